; Where gaps are in Go. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; Where two patterns match the same function, the one that knows its name counts.
(function_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(method_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(method_declaration
  receiver: (parameter_list (parameter_declaration
    type: [
      (type_identifier) @function.owner
      (generic_type type: (_) @function.owner)
      (pointer_type (type_identifier) @function.owner)
      (pointer_type (generic_type type: (_) @function.owner))]))
  name: (_) @function.name
  body: (block) @function.body) @function.outer
(func_literal body: (block) @function.body) @function.outer
(short_var_declaration
  left: (expression_list . (identifier) @function.name .)
  right: (expression_list . (func_literal body: (block) @function.body) @function.outer .))
(var_spec
  name: (identifier) @function.name
  value: (expression_list . (func_literal body: (block) @function.body) @function.outer .))
(keyed_element
  key: (literal_element (identifier) @function.name)
  value: (literal_element (func_literal body: (block) @function.body) @function.outer))

; The braces of an interface, a switch and a select are children of the node itself.
(type_spec name: (_) @class.name type: (struct_type (field_declaration_list) @class.body)) @class.outer
(type_spec name: (_) @class.name type: (interface_type) @class.body) @class.outer
(struct_type (field_declaration_list) @class.body) @class.outer
(interface_type) @class.body @class.outer

(if_statement consequence: (block) @block.body) @block.outer
(if_statement alternative: (block) @block.body) @block.outer
(for_statement body: (block) @block.body) @block.outer
(expression_switch_statement) @block.body @block.outer
(type_switch_statement) @block.body @block.outer
(select_statement) @block.body @block.outer
(statement_list (block) @block.body @block.outer)

(call_expression arguments: (argument_list) @arguments)
(function_declaration parameters: (parameter_list) @parameters)
(method_declaration parameters: (parameter_list) @parameters)
(func_literal parameters: (parameter_list) @parameters)
(function_type parameters: (parameter_list) @parameters)
(method_elem parameters: (parameter_list) @parameters)
(literal_value) @collection

(short_var_declaration right: (expression_list (_expression) @expression))
(assignment_statement right: (expression_list (_expression) @expression))
(var_spec value: (expression_list (_expression) @expression))
(const_spec value: (expression_list (_expression) @expression))
(return_statement (expression_list) @expression)
(return_statement (expression_list (_expression) @expression))
(if_statement condition: (_) @expression)
(for_statement (_expression) @expression)
(for_clause condition: (_) @expression)
(range_clause right: (_) @expression)
(expression_switch_statement value: (_) @expression)
(expression_case value: (expression_list (_expression) @expression))
(send_statement value: (_) @expression)
(argument_list (_expression) @expression)
(parenthesized_expression (_expression) @expression)
(index_expression index: (_) @expression)
(keyed_element value: (literal_element (_expression) @expression))
(literal_value (literal_element (_expression) @expression))
(go_statement (_expression) @expression)
(defer_statement (_expression) @expression)
(expression_statement (_expression) @expression)

[(package_clause) (import_declaration) (function_declaration) (method_declaration) (type_declaration)
  (const_declaration) (var_declaration)] @statement
(statement_list (_statement) @statement)

[(interpreted_string_literal) (raw_string_literal)] @string
(comment) @comment

(source_file [(package_clause) (import_declaration)] @import)

((statement_list (expression_statement (call_expression function: (identifier) @_called arguments: (argument_list
  [(interpreted_string_literal) (raw_string_literal)] @_message))) @stub)
  (#eq? @_called "panic")
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; A method that does nothing, and cannot, for its receiver has no name, is there to be in an interface.
((method_declaration
  receiver: (parameter_list (parameter_declaration !name))
  !result
  body: (block) @_body) @stub.skip
  (#match? @_body "^[{][ \\t]*[}]$"))

; The grammar takes these for names.
([(identifier) (type_identifier) (field_identifier) (label_name)] @refuse
  (#any-of? @refuse "break" "case" "const" "continue" "defer" "else" "for" "func" "go" "goto" "if" "import" "package" "range"
    "return" "select" "switch" "type" "var"))

; Statements are in functions, and what leaves a loop in one.
[(function_declaration) (method_declaration) (func_literal)] @room.function @wall
[(expression_statement) (send_statement) (inc_statement) (dec_statement) (assignment_statement) (short_var_declaration)
  (go_statement) (defer_statement) (if_statement) (for_statement) (expression_switch_statement) (type_switch_statement)
  (select_statement) (labeled_statement) (fallthrough_statement) (break_statement) (continue_statement) (goto_statement)
  (return_statement)] @misplaced.function
(package_clause) @wall
(source_file (block) @misplaced)
[(for_statement) (expression_switch_statement) (type_switch_statement) (select_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop
((literal_value) @refuse (#match? @refuse "^[{]\\s*,"))

; Only a call is deferred or runs beside, and only a case goes on to the next one.
(defer_statement [(identifier) (selector_expression) (index_expression) (func_literal)] @refuse)
(go_statement [(identifier) (selector_expression) (index_expression) (func_literal)] @refuse)
(block (statement_list (fallthrough_statement) @refuse))
; An escape that there is not.
((escape_sequence) @refuse (#not-match? @refuse "^\\\\[abfnrtvxuU0-7\\\\'\"]"))
; A case on a line of the statement before it.
([(expression_switch_statement) (type_switch_statement) (select_statement)] @refuse
  (#match? @refuse "\n[ \t]+[^\n\"'`/]*[^\n\"'`/;{:\\s][ \t]+(default:|case [^\n\"'`/:]+:)"))

; A separator with nothing before it.
[(literal_value "{" . "," @refuse) (parameter_list "(" . "," @refuse)]
