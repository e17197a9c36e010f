; Where gaps are in Rust. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; Where two patterns match the same function, the one that knows its name counts.
(function_item name: (_) @function.name body: (block) @function.body) @function.outer
(closure_expression body: (block) @function.body) @function.outer
(let_declaration pattern: (identifier) @function.name
  value: (closure_expression body: (block) @function.body) @function.outer)

(struct_item name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(union_item name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(enum_item name: (_) @class.name body: (enum_variant_list) @class.body) @class.outer
(enum_variant name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(trait_item name: (_) @class.name body: (declaration_list) @class.body) @class.outer
(mod_item name: (_) @class.name body: (declaration_list) @class.body) @class.outer
(impl_item type: (type_identifier) @class.name body: (declaration_list) @class.body) @class.outer
(impl_item type: (scoped_type_identifier name: (_) @class.name) body: (declaration_list) @class.body) @class.outer
(impl_item type: (generic_type type: (type_identifier) @class.name) body: (declaration_list) @class.body) @class.outer
(impl_item
  type: (generic_type type: (scoped_type_identifier name: (_) @class.name))
  body: (declaration_list) @class.body) @class.outer
(impl_item type: (reference_type type: (type_identifier) @class.name) body: (declaration_list) @class.body) @class.outer
(impl_item body: (declaration_list) @class.body) @class.outer
(foreign_mod_item body: (declaration_list) @class.body) @class.outer

(if_expression consequence: (block) @block.body) @block.outer
(else_clause (block) @block.body) @block.outer
(let_declaration alternative: (block) @block.body) @block.outer
(for_expression body: (block) @block.body) @block.outer
(while_expression body: (block) @block.body) @block.outer
(loop_expression body: (block) @block.body) @block.outer
(match_expression body: (match_block) @block.body) @block.outer
(match_arm value: (block) @block.body) @block.outer
(unsafe_block (block) @block.body) @block.outer
(async_block (block) @block.body) @block.outer
(const_block body: (block) @block.body) @block.outer
(let_declaration value: (block) @block.body) @block.outer
(expression_statement (block) @block.body) @block.outer
(block (block) @block.body @block.outer)

(call_expression arguments: (arguments) @arguments)
(macro_invocation (token_tree) @arguments)
(attribute arguments: (token_tree) @arguments)
[(parameters) (closure_parameters)] @parameters
[(array_expression) (tuple_expression) (field_initializer_list)] @collection

(let_declaration value: (_) @expression)
(const_item value: (_) @expression)
(static_item value: (_) @expression)
(assignment_expression right: (_) @expression)
(compound_assignment_expr right: (_) @expression)
(return_expression (_expression) @expression)
(break_expression (_expression) @expression)
(if_expression condition: (_) @expression)
(while_expression condition: (_) @expression)
(let_condition value: (_) @expression)
(match_expression value: (_) @expression)
(match_pattern condition: (_) @expression)
(match_arm value: (_expression) @expression ",")
(match_arm value: [(identifier) (scoped_identifier) (field_expression) (index_expression) (macro_invocation)] @expression .)
(for_expression value: (_) @expression)
(closure_expression body: (_) @expression)
(arguments (_expression) @expression)
(array_expression (_expression) @expression)
(tuple_expression (_expression) @expression)
(parenthesized_expression (_expression) @expression)
(index_expression (_expression) (_expression) @expression)
(field_initializer value: (_) @expression)
(base_field_initializer (_expression) @expression)
; A pattern that names a parent is looked for in all of its children; one that does not costs next to nothing.
[(call_expression) (await_expression) (try_expression) (binary_expression) (unary_expression) (reference_expression)
  (range_expression) (struct_expression)] @expression
(expression_statement [(identifier) (scoped_identifier) (field_expression) (index_expression) (macro_invocation)] @expression)
(block [(identifier) (scoped_identifier) (field_expression) (index_expression) (macro_invocation)] @expression .)

[(expression_statement) (let_declaration) (macro_definition) (mod_item) (foreign_mod_item) (struct_item)
  (union_item) (enum_item) (type_item) (associated_type) (function_item) (function_signature_item) (impl_item)
  (trait_item) (use_declaration) (extern_crate_declaration) (static_item) (const_item) (match_arm)] @statement
(block (_expression) @statement)
(source_file (macro_invocation) @statement)
(declaration_list (macro_invocation) @statement)

[(string_literal) (raw_string_literal)] @string
[(line_comment) (block_comment)] @comment

(source_file [(use_declaration) (extern_crate_declaration)] @import)
(source_file (mod_item !body) @import)

((block [(expression_statement (macro_invocation macro: (identifier) @_macro)) (macro_invocation
  macro: (identifier) @_macro)] @stub)
  (#any-of? @_macro "todo" "unimplemented"))
((block [(expression_statement (macro_invocation macro: (identifier) @_macro (token_tree (string_literal) @_message)))
  (macro_invocation macro: (identifier) @_macro (token_tree (string_literal) @_message))] @stub)
  (#eq? @_macro "panic")
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; What a trait does by default may be nothing, or a function that it leaves out.
((trait_item body: (declaration_list (function_item !return_type body: (block) @_body) @stub.skip))
  (#match? @_body "^[{][ \\t]*[}]$"))
((trait_item body: (declaration_list (function_item body: (block) @_body) @stub.skip))
  (#match? @_body "^[{]\\s*unimplemented!\\(\\s*\\);?\\s*[}]$"))

; Statements are in blocks, and what leaves a loop in one. A macro may be an item.
(block) @room.function
[(function_item) (closure_expression) (async_block) (struct_item) (enum_item) (impl_item) (trait_item)
  (mod_item) (use_declaration)] @wall
(let_declaration) @misplaced.function
((expression_statement) @misplaced.function (#not-match? @misplaced.function "^[A-Za-z0-9_: ]+!"))
(source_file (empty_statement) @misplaced)
(declaration_list [(function_item) (function_signature_item)] . (empty_statement) @misplaced)
[(for_expression) (loop_expression) (while_expression)] @room.loop
(block (label)) @room.loop
[(break_expression) (continue_expression)] @misplaced.loop
((enum_variant name: (identifier) @refuse)
  (#any-of? @refuse "break" "continue" "else" "fn" "for" "if" "let" "loop" "match" "return" "struct" "use" "while"))
; A call of a macro that is followed by a statement, without its semicolon.
(block (macro_invocation (token_tree . ["(" "["])) @refuse [(macro_invocation) (expression_statement) (let_declaration) (_expression)])
; What returns has no sign after it.
(binary_expression left: (return_expression) @refuse)
; Two comparisons in a row, such as a type's parameters in a path without its colons.
[(binary_expression left: (binary_expression operator: ["<" ">" "<=" ">=" "==" "!="]) operator: ["<" ">" "<=" ">=" "==" "!="])
  (binary_expression operator: ["<" ">" "<=" ">=" "==" "!="] right: (binary_expression operator: ["<" ">" "<=" ">=" "==" "!="]))] @refuse
; A keyword as a name.
([(type_identifier) @refuse (arguments (identifier) @refuse) (call_expression function: (identifier) @refuse) (assignment_expression (identifier) @refuse) (binary_expression (identifier) @refuse)
  (block (identifier) @refuse) (expression_statement (identifier) @refuse) (let_declaration value: (identifier) @refuse)
  (return_expression (identifier) @refuse) (shorthand_field_initializer (identifier) @refuse)]
  (#any-of? @refuse "as" "break" "else" "enum" "fn" "for" "if" "impl" "in" "let" "loop" "match" "mod" "mut" "pub" "ref" "return"
    "struct" "trait" "use" "where" "while"))

; Words of the language that the grammar takes for names.
([(let_declaration pattern: (identifier) @refuse) (parameter pattern: (identifier) @refuse)
  (function_item name: (identifier) @refuse) (field_expression field: (field_identifier) @refuse)]
  (#any-of? @refuse "as" "async" "await" "break" "const" "continue" "dyn" "else" "enum" "extern" "fn" "for" "if" "impl" "in"
    "let" "loop" "match" "mod" "move" "mut" "pub" "ref" "return" "static" "struct" "trait" "type" "unsafe" "use" "where"
    "while"))

; An attribute of the block that is not at its beginning.
(block (_) . (inner_attribute_item) @refuse)
; An escape that there is not, and a pattern that changes and is no name.
((escape_sequence) @refuse (#not-match? @refuse "^\\\\[nrt0\\\\'\"xu\\r\\n]"))
(mut_pattern (tuple_struct_pattern) @refuse)
; A parameter without a name, which only the type of a function may have.
(function_item parameters: (parameters [(array_type) (generic_type) (macro_invocation) (primitive_type) (reference_type)
  (scoped_type_identifier) (tuple_type) (type_identifier)] @refuse))
([(function_item parameters: (parameters [(abstract_type) (bounded_type) (dynamic_type) (function_type) (never_type) (pointer_type)
    (unit_type)] @refuse))
  (function_signature_item parameters: (parameters [(abstract_type) (bounded_type) (dynamic_type) (function_type) (never_type)] @refuse))])
; A separator with nothing before it.
[(arguments "(" . "," @refuse) (enum_variant_list "{" . "," @refuse) (field_declaration_list "{" . "," @refuse)
  (field_initializer_list "{" . "," @refuse) (ordered_field_declaration_list "(" . "," @refuse) (parameters "(" . "," @refuse)
  (slice_pattern "[" . "," @refuse) (struct_pattern "{" . "," @refuse) (tuple_pattern "(" . "," @refuse) (use_list "{" . "," @refuse)]
; Brackets around a bound hold one trait.
[(trait_bounds (tuple_type (_) @refuse (_)))
  (trait_bounds (tuple_type (bounded_type) @refuse)) (bounded_type (tuple_type (bounded_type) @refuse))
  (dynamic_type trait: (tuple_type (bounded_type) @refuse)) (abstract_type trait: (tuple_type (bounded_type) @refuse))]
