; inherits: c-family
; Where gaps are in C++ only. docs/adding-a-language.md tells what every capture means.

; A name stands under as many stars and references as its function's type has.
(function_definition
  declarator: [
    (function_declarator declarator: (_) @function.name)
    (reference_declarator (function_declarator declarator: (_) @function.name))
    (pointer_declarator declarator: (function_declarator declarator: (_) @function.name))
    (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (_) @function.name)))]
  body: (compound_statement) @function.body) @function.outer
(function_definition
  declarator: (function_declarator declarator: (_) @function.name)
  (try_statement body: (compound_statement) @function.body)) @function.outer
(lambda_expression body: (compound_statement) @function.body) @function.outer
(init_declarator
  declarator: (identifier) @function.name
  value: (lambda_expression body: (compound_statement) @function.body) @function.outer)

(class_specifier body: (field_declaration_list) @class.body) @class.outer
(class_specifier name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(namespace_definition body: (declaration_list) @class.body) @class.outer
(namespace_definition name: (_) @class.name body: (declaration_list) @class.body) @class.outer

(for_range_loop body: (compound_statement) @block.body) @block.outer
(try_statement body: (compound_statement) @block.body) @block.outer
(catch_clause body: (compound_statement) @block.body) @block.outer

(new_expression arguments: (argument_list) @arguments)
(init_declarator value: (argument_list) @arguments)
(field_initializer (argument_list) @arguments)
(abstract_function_declarator parameters: (parameter_list) @parameters)

(init_declarator value: (expression) @expression)
(init_declarator value: (initializer_list) @expression)
(field_declaration default_value: (_) @expression)
(optional_parameter_declaration default_value: (_) @expression)
(co_return_statement (expression) @expression)
(throw_statement (expression) @expression)
(condition_clause value: [(expression) (comma_expression)] @expression)
(for_range_loop right: (_) @expression)
(subscript_argument_list (expression) @expression)
(expression_statement [(qualified_identifier) (new_expression) (co_await_expression)] @expression)

[(template_declaration) (template_instantiation) (namespace_definition) (namespace_alias_definition)
  (using_declaration) (alias_declaration) (static_assert_declaration) (concept_definition)] @statement
(compound_statement (qualified_identifier) @statement)

(raw_string_literal) @string

(translation_unit (using_declaration) @import)

((compound_statement (throw_statement (call_expression arguments: (argument_list (string_literal) @_message))) @stub)
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; A constructor that gives its members their values may well have nothing else to do, and so has a destructor.
(function_definition (field_initializer_list)) @stub.skip
(function_definition declarator: (function_declarator declarator: (destructor_name))) @stub.skip
(function_definition
  declarator: (function_declarator declarator: (qualified_identifier name: (destructor_name)))) @stub.skip
; What does nothing until somebody overrides it is written as meant, unless it overrides another one itself.
((function_definition
  "virtual"
  type: (_) @_type
  declarator: (function_declarator) @_declared
  body: (compound_statement) @_body) @stub.skip
  (#eq? @_type "void")
  (#not-match? @_declared "\\b(override|final)\\b")
  (#match? @_body "^[{][ \\t]*[}]$"))

; The grammar takes these for names, and a call for the constructor of a class.
([(identifier) (type_identifier) (field_identifier)] @refuse
  (#any-of? @refuse "catch" "delete" "new" "throw" "try"))
((class_specifier name: (type_identifier) @_class
  body: (field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @misplaced))))
  (#not-eq? @misplaced @_class) (#match? @misplaced "^[a-z]"))
((struct_specifier name: (type_identifier) @_class
  body: (field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @misplaced))))
  (#not-eq? @misplaced @_class) (#match? @misplaced "^[a-z]"))

(lambda_expression) @room.function @wall
(for_range_loop) @room.loop
[(co_return_statement) (for_range_loop) (throw_statement) (try_statement)] @misplaced.function
(expression_statement [(delete_expression) (identifier) (new_expression)]) @misplaced.function
((expression_statement (call_expression function: (identifier) @_called)) @misplaced.function
  (#match? @_called "^[a-z]"))

; What no function holds.
(compound_statement [(namespace_definition) (template_declaration)] @refuse)
(compound_statement (function_definition type: (_) declarator: (function_declarator)) @refuse)

; A value in braces that has statements is read as the body of a function without parameters.
([(compound_statement
    (function_definition type: (_)
      declarator: [(identifier) (array_declarator) (pointer_declarator declarator: (identifier)) (reference_declarator (identifier))])
    @refuse)
  (field_declaration_list
    (function_definition type: (_)
      declarator: [(field_identifier) (array_declarator) (pointer_declarator declarator: (field_identifier))
        (reference_declarator (field_identifier))])
    @refuse)
  (function_definition
    type: [(placeholder_type_specifier) (primitive_type) (qualified_identifier) (sized_type_specifier) (template_type)]
    declarator: [(identifier) (array_declarator) (pointer_declarator declarator: (identifier)) (reference_declarator (identifier))])
  @refuse])
; A subscript without an index.
((subscript_argument_list) @refuse (#match? @refuse "^\\[\\s*\\]$"))
; Nothing that is read with an expanded pack follows it.
[(call_expression function: (parameter_pack_expansion) @refuse) (binary_expression left: (parameter_pack_expansion) @refuse)
  (assignment_expression left: (parameter_pack_expansion) @refuse) (field_expression argument: (parameter_pack_expansion) @refuse)
  (conditional_expression condition: (parameter_pack_expansion) @refuse) (update_expression argument: (parameter_pack_expansion) @refuse)]
