; Parsed, and refused by the compiler: statements of a file that is no script, what leaves a loop outside of one, and a
; case outside of a switch.
[(function_declaration) (class_declaration) (protocol_declaration)] @wall
(source_file [(assignment) (await_expression) (call_expression) (control_transfer_statement) (do_statement)
  (for_statement) (guard_statement) (if_statement) (integer_literal) (line_string_literal) (navigation_expression)
  (repeat_while_statement) (simple_identifier) (switch_statement) (try_expression) (while_statement)] @misplaced)
(lambda_literal) @wall
[(for_statement) (while_statement) (repeat_while_statement) (switch_statement)] @room.loop
((control_transfer_statement) @misplaced.loop (#match? @misplaced.loop "^(break|continue)$"))
((statement_label) @refuse (#match? @refuse "^(case|default)"))
; A word of the language in the place of a value, a statement that is called, a half of a path, and an element that is none.
([(statements (simple_identifier) @refuse) (value_argument value: (simple_identifier) @refuse)
  (assignment result: (simple_identifier) @refuse) (check_expression target: (simple_identifier) @refuse)
  (control_transfer_statement result: (simple_identifier) @refuse)
  (array_literal (simple_identifier) @refuse) (navigation_expression target: (simple_identifier) @refuse)
  (tuple_expression value: (simple_identifier) @refuse) (dictionary_literal value: (simple_identifier) @refuse)
  (property_declaration value: (simple_identifier) @refuse) (as_expression expr: (simple_identifier) @refuse)
  (additive_expression (simple_identifier) @refuse) (multiplicative_expression (simple_identifier) @refuse)
  (comparison_expression (simple_identifier) @refuse) (equality_expression (simple_identifier) @refuse)
  (conjunction_expression (simple_identifier) @refuse) (disjunction_expression (simple_identifier) @refuse)
  (prefix_expression . [(bang) "-" "~"] (simple_identifier) @refuse) (ternary_expression (simple_identifier) @refuse)
  (nil_coalescing_expression (simple_identifier) @refuse) (range_expression (simple_identifier) @refuse)
  (interpolated_expression value: (simple_identifier) @refuse) (try_expression (simple_identifier) @refuse)
  (await_expression (simple_identifier) @refuse)]
  (#any-of? @refuse "break" "case" "catch" "class" "continue" "default" "defer" "do" "else" "enum" "for" "func" "guard" "if"
    "import" "in" "is" "let" "repeat" "return" "switch" "throw" "try" "var" "where" "while"))
((call_expression . (simple_identifier) @refuse)
  (#any-of? @refuse "break" "case" "catch" "continue" "default" "else" "for" "guard" "if" "in" "return" "switch" "where" "while"))
(call_expression . [(if_statement) (switch_statement)] @refuse)
((call_expression . (call_expression . (simple_identifier) @_word)) @refuse (#any-of? @_word "defer" "do"))
([(statements (key_path_expression) @refuse) (assignment result: (key_path_expression) @refuse)
  (value_argument value: (key_path_expression) @refuse)] (#match? @refuse "^\\\\$"))
(dictionary_literal (assignment) @refuse)
(prefix_expression "." (try_expression) @refuse)
(value_arguments (value_argument value: (_)) (value_argument reference_specifier: (_) !value) @refuse)
; A type that is called, or has a block after it: a cast is in brackets then.
(call_expression . [(as_expression) (check_expression)] @refuse)
