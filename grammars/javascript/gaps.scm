; inherits: ecma, jsx
; Where gaps are in JavaScript only. docs/adding-a-language.md tells what every capture means.

(field_definition property: (_) @function.name value: [
  (arrow_function body: (statement_block) @function.body)
  (function_expression !name body: (statement_block) @function.body)
  (generator_function !name body: (statement_block) @function.body)] @function.outer)

(field_definition value: (_) @expression)

(class_body (field_definition) @statement)

; A constant without its value.
(lexical_declaration kind: "const" (variable_declarator name: (_) @refuse !value))

; A modifier of the next line's field, which no line of its own ends.
((field_definition) @refuse (#any-of? @refuse "accessor" "get" "set" "static"))
