; Where gaps are in C and in C++ alike. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; A function's name stands inside its declarator; where two patterns match the same function, the one that knows its
; name counts.
(function_definition body: (compound_statement) @function.body) @function.outer

(struct_specifier body: (field_declaration_list) @class.body) @class.outer
(struct_specifier name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(union_specifier body: (field_declaration_list) @class.body) @class.outer
(union_specifier name: (_) @class.name body: (field_declaration_list) @class.body) @class.outer
(enum_specifier body: (enumerator_list) @class.body) @class.outer
(enum_specifier name: (_) @class.name body: (enumerator_list) @class.body) @class.outer
(type_definition
  type: [
    (struct_specifier !name body: (field_declaration_list) @class.body)
    (union_specifier !name body: (field_declaration_list) @class.body)
    (enum_specifier !name body: (enumerator_list) @class.body)] @class.outer
  declarator: (type_identifier) @class.name)
(linkage_specification body: (declaration_list) @class.body) @class.outer

(if_statement consequence: (compound_statement) @block.body) @block.outer
(else_clause (compound_statement) @block.body) @block.outer
(for_statement body: (compound_statement) @block.body) @block.outer
(while_statement body: (compound_statement) @block.body) @block.outer
(do_statement body: (compound_statement) @block.body) @block.outer
(switch_statement body: (compound_statement) @block.body) @block.outer
(case_statement (compound_statement) @block.body) @block.outer
(labeled_statement (compound_statement) @block.body) @block.outer
(compound_statement (compound_statement) @block.body @block.outer)

(call_expression arguments: (argument_list) @arguments)
(function_declarator parameters: (parameter_list) @parameters)
(initializer_list) @collection

(assignment_expression right: (_) @expression)
(return_statement [(expression) (comma_expression)] @expression)
(parenthesized_expression [(expression) (comma_expression)] @expression)
(for_statement condition: (_) @expression)
(for_statement update: (_) @expression)
(case_statement value: (_) @expression)
(conditional_expression [condition: (_) consequence: (_) alternative: (_)] @expression)
(argument_list (expression) @expression)
(initializer_list [(expression) (initializer_list)] @expression)
(initializer_pair value: (_) @expression)
(enumerator value: (_) @expression)
; An assignment is no value; its right side is.
(expression_statement [(call_expression) (field_expression) (subscript_expression) (identifier) (binary_expression)
  (unary_expression) (pointer_expression) (conditional_expression)] @expression)

; A pattern that names a parent is looked for in all of its children; one that does not costs next to nothing.
[(function_definition) (declaration) (type_definition) (linkage_specification) (field_declaration)] @statement
; A declaration that is only begun is a type.
(compound_statement [(statement) (type_specifier)] @statement)
(case_statement [(expression_statement) (compound_statement) (if_statement) (for_statement) (while_statement)
  (switch_statement) (return_statement) (break_statement)] @statement)
(preproc_if (statement) @statement)
(preproc_ifdef (statement) @statement)
(preproc_else (statement) @statement)
(preproc_elif (statement) @statement)

[(string_literal) (system_lib_string)] @string
(comment) @comment

; The guard of a header stands round its includes, so they need not be at the top.
(preproc_include) @import

((compound_statement (expression_statement (call_expression function: (identifier) @_called)) @stub)
  (#match? @_called "^(TODO|NOT_?IMPLEMENTED|UNIMPLEMENTED)$"))
((compound_statement (expression_statement (call_expression function: (identifier) @_called
  arguments: (argument_list [
    (string_literal) @_message
    (unary_expression (string_literal) @_message)
    (binary_expression (string_literal) @_message)]))) @stub)
  (#any-of? @_called "assert" "abort" "panic" "fatal" "error")
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; The grammar takes these for names.
([(identifier) (type_identifier) (field_identifier) (statement_identifier)] @refuse
  (#any-of? @refuse "break" "case" "continue" "default" "do" "else" "enum" "extern" "for" "goto" "if" "return"
    "static" "struct" "switch" "typedef" "union" "while"))

; Statements are in functions, what leaves a loop and a case in one; a macro may stand for a header. A call may be a macro.
[(preproc_include) (preproc_def) (field_declaration_list)] @wall
; A header that is read once is no part of a function.
((preproc_call) @wall (#match? @wall "^#\\s*pragma\\s+once"))
(function_definition) @room.function @wall
(translation_unit (compound_statement) @room.function @misplaced)
[(break_statement) (case_statement) (continue_statement) (do_statement) (for_statement) (goto_statement) (if_statement)
  (labeled_statement) (return_statement) (switch_statement) (while_statement)] @misplaced.function
(expression_statement [(assignment_expression) (binary_expression) (char_literal) (concatenated_string)
  (conditional_expression) (field_expression) (number_literal) (parenthesized_expression) (pointer_expression)
  (string_literal) (subscript_expression) (unary_expression) (update_expression)]) @misplaced.function
(expression_statement (call_expression function: [(call_expression) (field_expression) (parenthesized_expression)]))
  @misplaced.function
(expression_statement (call_expression function: (identifier) @_called arguments: (argument_list . "(" . ")"))
  (#match? @_called "^[a-z]")) @misplaced.function
[(for_statement) (while_statement) (do_statement) (switch_statement)] @room.loop
(switch_statement) @room.switch
(compound_statement [(compound_statement) (function_definition)] @room.loop)
[(break_statement) (continue_statement)] @misplaced.loop
(case_statement) @misplaced.switch

; A separator with nothing before it.
(initializer_list "{" . "," @refuse)
