; inherits: c-family
; Where gaps are in C only. docs/adding-a-language.md tells what every capture means.

; A name stands under as many stars as its function's type has.
(function_definition
  declarator: [
    (function_declarator declarator: (identifier) @function.name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @function.name))
    (pointer_declarator declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @function.name)))]
  body: (compound_statement) @function.body) @function.outer

(init_declarator value: (_) @expression)
(subscript_expression index: (_) @expression)

; A call without its semicolon, and the next line: `f(a)` above `g();` is read as a macro that gives a type.
; A field of no type, as far as it is no macro.
((field_declaration type: (type_identifier) @refuse !declarator) (#match? @refuse "[a-z]"))
; A type after an operator, which takes in the line below.
([(init_declarator value: (binary_expression left: (identifier) @refuse))
  (assignment_expression right: (binary_expression left: (identifier) @refuse))]
  (#any-of? @refuse "bool" "char" "const" "double" "enum" "extern" "float" "int" "long" "short" "signed" "static" "struct"
    "typedef" "union" "unsigned" "void" "volatile"))
((macro_type_specifier name: (identifier) @refuse)
  (#match? @refuse "^[a-z]") (#not-eq? @refuse "typeof"))
; A function of this name has no value; its semicolon is missing.
(init_declarator declarator: (function_declarator declarator: (identifier)) @refuse)
; A body of what has no parameters.
(function_definition declarator: (identifier)) @refuse
