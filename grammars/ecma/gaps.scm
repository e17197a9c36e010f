; Where gaps are in JavaScript and in TypeScript alike. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; Functions. One without a name of its own is called by what it is assigned to; where two patterns match the
; same function, the one that knows its name counts.
(function_declaration name: (_) @function.name body: (statement_block) @function.body) @function.outer
(generator_function_declaration name: (_) @function.name body: (statement_block) @function.body) @function.outer
(method_definition name: (_) @function.name body: (statement_block) @function.body) @function.outer
(function_expression body: (statement_block) @function.body) @function.outer
(function_expression name: (_) @function.name body: (statement_block) @function.body) @function.outer
(generator_function body: (statement_block) @function.body) @function.outer
(generator_function name: (_) @function.name body: (statement_block) @function.body) @function.outer
(arrow_function body: (statement_block) @function.body) @function.outer
(variable_declarator name: (identifier) @function.name value: [
  (arrow_function body: (statement_block) @function.body)
  (function_expression !name body: (statement_block) @function.body)
  (generator_function !name body: (statement_block) @function.body)] @function.outer)
(assignment_expression left: [(identifier) @function.name (member_expression property: (_) @function.name)] right: [
  (arrow_function body: (statement_block) @function.body)
  (function_expression !name body: (statement_block) @function.body)
  (generator_function !name body: (statement_block) @function.body)] @function.outer)
(pair key: (property_identifier) @function.name value: [
  (arrow_function body: (statement_block) @function.body)
  (function_expression !name body: (statement_block) @function.body)
  (generator_function !name body: (statement_block) @function.body)] @function.outer)

(class_declaration name: (_) @class.name body: (class_body) @class.body) @class.outer
(class name: (_) @class.name body: (class_body) @class.body) @class.outer
(class !name body: (class_body) @class.body) @class.outer

(if_statement consequence: (statement_block) @block.body) @block.outer
(else_clause (statement_block) @block.body) @block.outer
(for_statement body: (statement_block) @block.body) @block.outer
(for_in_statement body: (statement_block) @block.body) @block.outer
(while_statement body: (statement_block) @block.body) @block.outer
(do_statement body: (statement_block) @block.body) @block.outer
(try_statement body: (statement_block) @block.body) @block.outer
(catch_clause body: (statement_block) @block.body) @block.outer
(finally_clause body: (statement_block) @block.body) @block.outer
(labeled_statement body: (statement_block) @block.body) @block.outer
(with_statement body: (statement_block) @block.body) @block.outer
(class_static_block body: (statement_block) @block.body) @block.outer
(switch_statement body: (switch_body) @block.body) @block.outer
(statement_block (statement_block) @block.body @block.outer)
(switch_case (statement_block) @block.body) @block.outer
(switch_default (statement_block) @block.body) @block.outer

(call_expression arguments: (arguments) @arguments)
(new_expression arguments: (arguments) @arguments)
(formal_parameters) @parameters
[(array) (object)] @collection

(variable_declarator value: (_) @expression)
(assignment_expression right: (_) @expression)
(augmented_assignment_expression right: (_) @expression)
(assignment_pattern right: (_) @expression)
(object_assignment_pattern right: (_) @expression)
(arrow_function body: (expression) @expression)
(return_statement [(expression) (sequence_expression)] @expression)
(throw_statement [(expression) (sequence_expression)] @expression)
(yield_expression (expression) @expression)
(parenthesized_expression [(expression) (sequence_expression)] @expression)
(for_statement condition: [(expression) (sequence_expression)] @expression)
(for_statement increment: (_) @expression)
(for_in_statement right: (_) @expression)
(switch_case value: (_) @expression)
(ternary_expression [condition: (_) consequence: (_) alternative: (_)] @expression)
(arguments (expression) @expression)
(spread_element (expression) @expression)
(array (expression) @expression)
(pair value: (_) @expression)
(subscript_expression index: (_) @expression)
(template_substitution (expression) @expression)
(export_statement value: (expression) @expression)
; An assignment is no value; its right side is.
(expression_statement [(call_expression) (new_expression) (await_expression) (yield_expression) (member_expression)
  (subscript_expression) (identifier) (binary_expression) (unary_expression) (ternary_expression)] @expression)

(program (statement) @statement)
(statement_block (statement) @statement)
(switch_case (statement) @statement)
(switch_default (statement) @statement)
(class_body [(method_definition) (class_static_block)] @statement)

[(string) (template_string)] @string
(comment) @comment
((comment) @docstring (#match? @docstring "^/[*][*][^/]"))

(program (import_statement) @import)
(program (export_statement source: (_)) @import)
((program [(lexical_declaration (variable_declarator value: (call_expression function: (identifier) @_called)))
  (variable_declaration (variable_declarator value: (call_expression function: (identifier) @_called)))] @import)
  (#eq? @_called "require"))

((statement_block (throw_statement [
  (new_expression arguments: (arguments [(string) (template_string)] @_message))
  (call_expression arguments: (arguments [(string) (template_string)] @_message))
  (string) @_message]) @stub)
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))
((statement_block (throw_statement (new_expression constructor: (identifier) @_error)) @stub)
  (#match? @_error "^(NotImplemented|Unimplemented)"))

; The grammar takes these for names.
([(identifier) (statement_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @refuse
  (#any-of? @refuse "break" "case" "catch" "const" "continue" "delete" "do" "else" "export" "finally" "for" "if" "in"
    "instanceof" "new" "return" "switch" "throw" "try" "typeof" "var" "void" "while"))
((expression_statement . (identifier) @refuse) (#eq? @refuse "let"))

([(shorthand_property_identifier) (shorthand_property_identifier_pattern)] @refuse
  (#any-of? @refuse "class" "default" "enum" "export" "extends" "false" "function" "import" "null" "super" "this" "true" "with"))

; An element that is missing, which only an array may have; what remains under a key.
(arguments ["(" ","] . "," @refuse)
(object ["{" ","] . "," @refuse)
(object_pattern ["{" ","] . "," @refuse)
(pair_pattern key: (_) @refuse value: (rest_pattern))

; What a value is assigned to ends before an operator.
[(binary_expression right: [(assignment_expression) (augmented_assignment_expression)] @refuse)
  (unary_expression argument: [(assignment_expression) (augmented_assignment_expression)] @refuse)]

; A name that is there once.
(object [(pair key: [(property_identifier) (string)]) (shorthand_property_identifier)] @once)

; A label is for a loop, or for a block that is left by `break`. Any other is a field of an object in the wrong place,
; except Svelte's `$`, whose statement runs again when what it reads changes.
((labeled_statement label: (_) @_label body: [(expression_statement) (empty_statement)]) @refuse (#not-eq? @_label "$"))
((labeled_statement label: (_) @_label body: (statement_block) @_block) @refuse
  (#not-eq? @_label "$") (#not-match? @_block "[^A-Za-z0-9_$]break[^A-Za-z0-9_$]"))

; What is only right in a function, an asynchronous one, a generator, a loop, or at the top of a file.
[(function_declaration) (generator_function_declaration) (function_expression) (generator_function) (method_definition)
  (arrow_function)] @room.function @wall
[(class_body) (import_clause) (export_clause)] @wall
(return_statement) @misplaced.function
(generator_function_declaration) @room.generator
(generator_function) @room.generator
(method_definition "*") @room.generator
(yield_expression) @misplaced.generator
(program) @room.async @room.file
[(function_declaration "async") (generator_function_declaration "async") (function_expression "async")
  (generator_function "async") (method_definition "async") (arrow_function "async")] @room.async
[(await_expression) (for_in_statement "await")] @misplaced.async
[(for_statement) (for_in_statement) (while_statement) (do_statement) (switch_statement) (labeled_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop
[(import_statement) (export_statement)] @misplaced.file
((statement_identifier) @refuse (#eq? @refuse "default"))

; A `try` without its other half, a declaration that is no statement of its block, a pattern without its value, and what
; begins a statement only as a declaration with a name.
(try_statement !handler !finalizer) @refuse
(if_statement consequence: [(lexical_declaration) (class_declaration)] @refuse)
(else_clause [(lexical_declaration) (class_declaration)] @refuse)
(for_statement body: [(lexical_declaration) (class_declaration)] @refuse)
(for_in_statement body: [(lexical_declaration) (class_declaration)] @refuse)
(while_statement body: [(lexical_declaration) (class_declaration)] @refuse)
(statement_block (lexical_declaration (variable_declarator name: [(object_pattern) (array_pattern)] @refuse !value)))
(program (lexical_declaration (variable_declarator name: [(object_pattern) (array_pattern)] @refuse !value)))
(expression_statement . [(function_expression) (generator_function) (class) (object)] @refuse)

; A separator with nothing before it.
[(arguments "(" . "," @refuse) (arguments "," . "," @refuse) (object "{" . "," @refuse) (object "," . "," @refuse)
  (object_pattern "{" . "," @refuse) (object_pattern "," . "," @refuse) (named_imports "{" . "," @refuse)
  (export_clause "{" . "," @refuse)]
