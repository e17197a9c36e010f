; inherits: ecma
; Where gaps are in TypeScript only. docs/adding-a-language.md tells what every capture means.

(public_field_definition name: (_) @function.name value: [
  (arrow_function body: (statement_block) @function.body)
  (function_expression !name body: (statement_block) @function.body)
  (generator_function !name body: (statement_block) @function.body)] @function.outer)

(abstract_class_declaration name: (_) @class.name body: (class_body) @class.body) @class.outer
(interface_declaration name: (_) @class.name body: (interface_body) @class.body) @class.outer
(enum_declaration name: (_) @class.name body: (enum_body) @class.body) @class.outer
(type_alias_declaration name: (_) @class.name value: (object_type) @class.body) @class.outer
(type_alias_declaration name: (_) @class.name value: (intersection_type (object_type) @class.body)) @class.outer
(internal_module name: (_) @class.name body: (statement_block) @class.body) @class.outer
(module name: (_) @class.name body: (statement_block) @class.body) @class.outer
(ambient_declaration "global" (statement_block) @class.body) @class.outer

(public_field_definition value: (_) @expression)
(required_parameter value: (_) @expression)
(optional_parameter value: (_) @expression)
(enum_assignment value: (_) @expression)
(expression_statement [(as_expression) (instantiation_expression) (satisfies_expression) (non_null_expression)] @expression)

(class_body [(public_field_definition) (method_signature) (abstract_method_signature) (index_signature)] @statement)

; A constructor whose parameters are the fields has nothing left to do.
((method_definition name: (property_identifier) @_name parameters: (formal_parameters [
  (required_parameter [(accessibility_modifier) (override_modifier) "readonly"])
  (optional_parameter [(accessibility_modifier) (override_modifier) "readonly"])])) @stub.skip
  (#eq? @_name "constructor"))

((type_identifier) @refuse
  (#any-of? @refuse "break" "case" "catch" "continue" "do" "else" "finally" "for" "if" "return" "switch" "throw" "try" "while"))

[(type_alias_declaration) (interface_declaration) (export_statement source: (_))] @wall
(internal_module) @wall @room.file
(internal_module body: (statement_block (import_statement source: (_)) @misplaced))
[(module) (ambient_declaration)] @room.file

; A constant without its value, which only a declaration of its type may be.
(lexical_declaration kind: "const" (variable_declarator name: (_) @refuse !type !value))
(lexical_declaration kind: "const" (variable_declarator type: (_) !value)) @misplaced.ambient
(ambient_declaration) @room.ambient

; A value where there is only a declaration: a constant of no given type may have one.
(ambient_declaration [(lexical_declaration (variable_declarator type: (_) value: (_) @refuse))
  (lexical_declaration kind: "let" (variable_declarator value: (_) @refuse))
  (variable_declaration (variable_declarator value: (_) @refuse))])

; The type of a function beside others without its brackets.
[(union_type [(function_type) (constructor_type)] @refuse) (intersection_type [(function_type) (constructor_type)] @refuse)]

; A body where there is only a declaration.
(ambient_declaration [(class_declaration body: (class_body (method_definition) @refuse))
  (abstract_class_declaration body: (class_body (method_definition) @refuse)) (function_declaration) @refuse])
((number) @refuse (#match? @refuse "^0[0-9]"))

; A modifier of the next line's field; some of them a line of their own does not end.
((public_field_definition) @refuse (#any-of? @refuse "abstract" "accessor" "async" "declare" "get" "override" "private" "protected"
  "public" "readonly" "set" "static"))

; A separator with nothing before it, or after it where it does not end a list.
[(object_type "{" . "," @refuse) (tuple_type "[" . "," @refuse) (type_arguments "," @refuse . ">")]
; A value has one type.
(expression_statement (_ . (type_arguments "," @refuse)))
