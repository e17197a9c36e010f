; Where gaps are in Java. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; Where two patterns match the same function, the one that knows its name counts.
(method_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(constructor_declaration name: (_) @function.name body: (constructor_body) @function.body) @function.outer
(compact_constructor_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(lambda_expression body: (block) @function.body) @function.outer
(variable_declarator name: (_) @function.name
  value: (lambda_expression body: (block) @function.body) @function.outer)

(class_declaration name: (_) @class.name body: (class_body) @class.body) @class.outer
(interface_declaration name: (_) @class.name body: (interface_body) @class.body) @class.outer
(enum_declaration name: (_) @class.name body: (enum_body) @class.body) @class.outer
(record_declaration name: (_) @class.name body: (class_body) @class.body) @class.outer
(annotation_type_declaration name: (_) @class.name body: (annotation_type_body) @class.body) @class.outer
(enum_constant name: (_) @class.name body: (class_body) @class.body) @class.outer
(object_creation_expression (class_body) @class.body) @class.outer

(if_statement consequence: (block) @block.body) @block.outer
(if_statement alternative: (block) @block.body) @block.outer
(for_statement body: (block) @block.body) @block.outer
(enhanced_for_statement body: (block) @block.body) @block.outer
(while_statement body: (block) @block.body) @block.outer
(do_statement body: (block) @block.body) @block.outer
(try_statement body: (block) @block.body) @block.outer
(try_with_resources_statement body: (block) @block.body) @block.outer
(catch_clause body: (block) @block.body) @block.outer
(finally_clause (block) @block.body) @block.outer
(synchronized_statement body: (block) @block.body) @block.outer
(labeled_statement (block) @block.body) @block.outer
(switch_expression body: (switch_block) @block.body) @block.outer
(switch_rule (block) @block.body) @block.outer
(switch_block_statement_group (block) @block.body) @block.outer
(static_initializer (block) @block.body) @block.outer
(class_body (block) @block.body @block.outer)
(block (block) @block.body @block.outer)

(method_invocation arguments: (argument_list) @arguments)
(object_creation_expression arguments: (argument_list) @arguments)
(explicit_constructor_invocation arguments: (argument_list) @arguments)
(enum_constant arguments: (argument_list) @arguments)
(annotation arguments: (annotation_argument_list) @arguments)
[(formal_parameters) (inferred_parameters)] @parameters
[(array_initializer) (element_value_array_initializer)] @collection

(variable_declarator value: (_) @expression)
(assignment_expression right: (_) @expression)
(return_statement (expression) @expression)
(throw_statement (expression) @expression)
(yield_statement (expression) @expression)
(assert_statement (expression) @expression)
(parenthesized_expression (expression) @expression)
(for_statement condition: (_) @expression)
(for_statement update: (_) @expression)
(enhanced_for_statement value: (_) @expression)
(resource value: (_) @expression)
(lambda_expression body: (expression) @expression)
(ternary_expression [condition: (_) consequence: (_) alternative: (_)] @expression)
(argument_list (expression) @expression)
(array_initializer [(expression) (array_initializer)] @expression)
(array_access index: (_) @expression)
(element_value_pair value: (_) @expression)
(switch_label (expression) @expression)
; An assignment is no value; its right side is.
(expression_statement [(method_invocation) (object_creation_expression) (field_access) (array_access) (identifier)
  (binary_expression) (ternary_expression) (switch_expression)] @expression)

; A pattern that names a parent is looked for in all of its children; one that does not costs next to nothing.
[(package_declaration) (import_declaration) (class_declaration) (interface_declaration) (enum_declaration)
  (record_declaration) (annotation_type_declaration) (method_declaration) (constructor_declaration)
  (compact_constructor_declaration) (field_declaration) (constant_declaration) (static_initializer)
  (annotation_type_element_declaration)] @statement
(class_body (block) @statement)
(block (statement) @statement)
(constructor_body [(statement) (explicit_constructor_invocation)] @statement)
(switch_block_statement_group (statement) @statement)

(string_literal) @string
[(line_comment) (block_comment)] @comment

(program [(package_declaration) (import_declaration)] @import)

([(block (throw_statement (object_creation_expression type: (_) @_type)) @stub)
  (constructor_body (throw_statement (object_creation_expression type: (_) @_type)) @stub)]
  (#match? @_type "(UnsupportedOperationException|NotImplementedException|NotImplementedError)$"))
([(block (throw_statement (object_creation_expression arguments: (argument_list (string_literal) @_message))) @stub)
  (constructor_body
    (throw_statement (object_creation_expression arguments: (argument_list (string_literal) @_message))) @stub)]
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; A private constructor without parameters is there so that nobody makes an instance.
((constructor_declaration (modifiers) @_modifiers parameters: (formal_parameters) @_parameters) @stub.skip
  (#match? @_modifiers "private")
  (#match? @_parameters "^[(] *[)]$"))

; What an interface does by default may be nothing, or an operation that it leaves out.
((interface_body (method_declaration (modifiers "default") type: (void_type) body: (block) @_body) @stub.skip)
  (#match? @_body "^[{][ \\t]*[}]$"))
((interface_body (method_declaration (modifiers "default") body: (block) @_body) @stub.skip)
  (#match? @_body "^[{]\\s*throw new UnsupportedOperationException\\(\\s*\\);\\s*[}]$"))

; The grammar takes these for names, and any expression for a statement.
([(identifier) (type_identifier)] @refuse
  (#any-of? @refuse "abstract" "assert" "break" "case" "catch" "class" "const" "continue" "default" "do" "else" "enum" "extends"
    "final" "finally" "for" "goto" "if" "implements" "import" "instanceof" "interface" "native" "new" "package" "private"
    "protected" "public" "return" "static" "switch" "synchronized" "throw" "throws" "transient" "try" "volatile" "while"))
((type_identifier) @refuse (#eq? @refuse "yield"))
(block (expression_statement [(array_access) (binary_expression) (cast_expression) (character_literal)
  (decimal_integer_literal) (false) (field_access) (identifier) (instanceof_expression) (lambda_expression)
  (method_reference) (null_literal) (parenthesized_expression) (string_literal) (ternary_expression) (this) (true)
  (unary_expression)] @refuse))

(program (package_declaration) @refuse . (package_declaration))
(program (package_declaration) . (package_declaration) @refuse)

; A label is for a loop, or for a block that is left by `break`.
(labeled_statement (expression_statement)) @refuse

; Statements are in blocks, and what leaves a loop in one; of the file only types are.
[(block) (constructor_body) (switch_block)] @room.function
[(class_body) (interface_body) (enum_body) (lambda_expression) (package_declaration) (import_declaration)] @wall
[(assert_statement) (break_statement) (continue_statement) (do_statement) (enhanced_for_statement) (expression_statement)
  (for_statement) (if_statement) (labeled_statement) (return_statement) (synchronized_statement) (throw_statement)
  (try_statement) (try_with_resources_statement) (while_statement) (yield_statement)] @misplaced.function
(program [(block) (local_variable_declaration) (method_declaration) (switch_expression)] @misplaced)
(record_declaration body: (class_body (block) @misplaced))
[(for_statement) (enhanced_for_statement) (while_statement) (do_statement) (switch_expression) (labeled_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop

; A declaration that is no statement of its block, or has modifiers of a member; an import in a block.
(if_statement consequence: (local_variable_declaration) @refuse)
(if_statement alternative: (local_variable_declaration) @refuse)
(for_statement body: (local_variable_declaration) @refuse)
(enhanced_for_statement body: (local_variable_declaration) @refuse)
(while_statement body: (local_variable_declaration) @refuse)
(block (local_variable_declaration (modifiers ["public" "protected" "private" "static"] @refuse)))
(block (class_declaration (modifiers ["public" "protected" "private" "static"] @refuse)))
(block (import_declaration) @refuse)
((local_variable_declaration type: (type_identifier) @_type declarator: (variable_declarator !value) @refuse)
  (#eq? @_type "var"))
; An escape that there is not.
((escape_sequence) @refuse (#not-match? @refuse "^\\\\[btnfrsu0-7\\\\'\"\\r\\n]"))
