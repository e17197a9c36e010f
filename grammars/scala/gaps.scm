; Parsed, and refused by the compiler: expressions of a file, and a keyword in the place of a name.
[(package_clause) (function_definition) (class_definition) (object_definition) (trait_definition)] @wall
(compilation_unit (expression) @misplaced)
((identifier) @refuse
  (#any-of? @refuse "case" "catch" "do" "else" "finally" "for" "if" "match" "return" "throw" "try" "val" "while"))
(refinement [(expression) (val_definition "=")] @refuse)
; An escape that there is not.
((string (escape_sequence) @refuse) (#not-match? @refuse "^\\\\[btnfrsu0-7\\\\'\"]"))
; Statements of a package, and a name after a value that a block is given to.
(package_clause (template_body (expression) @misplaced))
(call_expression function: (postfix_expression) @refuse arguments: (colon_argument))
