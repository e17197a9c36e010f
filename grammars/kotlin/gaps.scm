; Parsed, and refused by the compiler: statements of a file that is no script, what leaves a loop outside of one, and a
; keyword in the place of a name.
[(package_header) (function_declaration) (class_declaration) (object_declaration) (anonymous_function)] @wall
(source_file [(assignment) (binary_expression) (call_expression) (do_while_statement) (for_statement) (identifier)
  (if_expression) (index_expression) (infix_expression) (lambda_literal) (navigation_expression) (number_literal)
  (parenthesized_expression) (return_expression) (string_literal) (throw_expression) (try_expression) (unary_expression) (when_expression) (while_statement)] @misplaced)
[(for_statement) (while_statement) (do_while_statement)] @room.loop
((identifier) @misplaced.loop (#any-of? @misplaced.loop "break" "continue"))
((identifier) @refuse
  (#any-of? @refuse "do" "else" "for" "fun" "if" "interface" "return" "throw" "try" "typealias" "val" "var" "when" "while"))
((index_expression) @refuse (#match? @refuse "\\[\\s*\\]$"))
; A name alone is an entry of an enumeration, and of no other class.
((class_declaration (enum_class_body (enum_entry) @refuse)) @_class (#not-match? @_class "^[^{]*\\benum\\b"))
; An escape that there is not.
((string_literal (string_content) @refuse) (#match? @refuse "^\\\\[^tbnru'\"\\\\$]"))
