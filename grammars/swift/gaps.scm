; Parsed, and refused by the compiler: statements of a file that is no script, and a case outside of a switch.
[(function_declaration) (class_declaration) (protocol_declaration)] @wall
(source_file [(assignment) (await_expression) (call_expression) (control_transfer_statement) (do_statement)
  (for_statement) (guard_statement) (if_statement) (integer_literal) (line_string_literal) (navigation_expression)
  (repeat_while_statement) (simple_identifier) (switch_statement) (try_expression) (while_statement)] @misplaced)
((statement_label) @refuse (#match? @refuse "^(case|default)"))
