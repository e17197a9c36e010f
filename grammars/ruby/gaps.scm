; Parsed, and refused by Ruby: what leaves a method, a block or a loop outside of one, a class in a method, and a keyword
; in the place of a name.
[(method) (singleton_method) (lambda)] @room.function @wall
[(do_block) (block)] @room.function @room.loop
(program) @room.function
[(class) (module) (singleton_class)] @wall
(return) @misplaced.function
[(while) (until) (for) (while_modifier) (until_modifier) (lambda)] @room.loop
[(break) (next) (redo)] @misplaced.loop
[(method) (singleton_method)] @room.generator
(yield) @misplaced.generator
; What loads others is a file, and no part of one.
((call !receiver method: (identifier) @_loads) @wall (#any-of? @_loads "require" "require_relative"))
[(program) (class) (module) (singleton_class)] @room.file
[(class) (module) (assignment left: (constant))] @misplaced.file
(rescue) @room.handler
(retry) @misplaced.handler
[(if) (elsif) (unless) (case) (case_match) (body_statement (rescue)) (begin (rescue))] @room.choice
(else) @misplaced.choice
([(argument_list (identifier) @refuse) (right_assignment_list (identifier) @refuse) (exceptions (identifier) @refuse) (array (identifier) @refuse) (assignment (identifier) @refuse)
  (binary (identifier) @refuse) (block_body (identifier) @refuse) (body_statement (identifier) @refuse)
  (call receiver: (identifier) @refuse) (call !receiver method: (identifier) @refuse) (conditional (identifier) @refuse)
  (do (identifier) @refuse) (element_reference (identifier) @refuse) (else (identifier) @refuse) (ensure (identifier) @refuse) (interpolation (identifier) @refuse)
  (lambda_parameters (identifier) @refuse) (block_parameters (identifier) @refuse)
  (method body: (identifier) @refuse)
  (left_assignment_list (identifier) @refuse)
  (operator_assignment (identifier) @refuse) (unary (identifier) @refuse) (match_pattern (identifier) @refuse) (splat_argument (identifier) @refuse)
  (optional_parameter (identifier) @refuse) (keyword_parameter value: (identifier) @refuse) (case (identifier) @refuse) (when (pattern (identifier) @refuse))
  (if condition: (identifier) @refuse) (elsif condition: (identifier) @refuse) (unless condition: (identifier) @refuse)
  (while condition: (identifier) @refuse) (until condition: (identifier) @refuse)
  (if_modifier condition: (identifier) @refuse) (unless_modifier condition: (identifier) @refuse)
  (while_modifier condition: (identifier) @refuse) (until_modifier condition: (identifier) @refuse) (method_parameters (identifier) @refuse) (pair (identifier) @refuse) (parenthesized_statements (identifier) @refuse)
  (program (identifier) @refuse) (rescue_modifier (identifier) @refuse) (return (argument_list (identifier) @refuse)) (then (identifier) @refuse)]
  (#any-of? @refuse "begin" "case" "do" "else" "elsif" "end" "ensure" "redo" "rescue" "retry" "then" "unless" "until" "when"
    "while"))
; A value that is none, and what only receives calls.
[(assignment right: [(break) (next) (redo) (retry) (return)] @refuse)
  (argument_list [(break) (next) (redo) (retry) (return)] @refuse) (array [(break) (next) (redo) (retry) (return)] @refuse)
  (element_reference [(break) (next) (redo) (retry) (return)] @refuse)
  (pair value: [(break) (next) (redo) (retry) (return)] @refuse)]
(call method: [(class_variable) (global_variable) (instance_variable)] @refuse)
((method_parameters (identifier) @refuse)
  (#any-of? @refuse "begin" "break" "case" "class" "def" "do" "else" "end" "ensure" "false" "for" "if" "in" "module" "next" "nil" "not" "or" "and" "rescue" "return" "self" "super" "then" "true" "unless" "until" "while" "yield"))
((call arguments: (argument_list) @_given block: (block) @refuse) (#not-match? @_given "^[(]"))
(call method: (constant) !arguments block: (block) @refuse)
(binary right: (assignment left: (left_assignment_list)) @refuse)
((unary operator: ["-" "+"] operand: (call arguments: (argument_list) @_given) @refuse) (#not-match? @_given "^[(]"))
(([(array (call arguments: (argument_list) @_given) @refuse) (argument_list "," (call arguments: (argument_list) @_given) @refuse)])
  (#not-match? @_given "^[(]"))
; Nothing has failed that a choice could be after.
([(body_statement (_) @_last . (else) @refuse) (begin (_) @_last . (else) @refuse)] (#not-match? @_last "^(rescue\\b|#)"))
; No argument by its place is after one by its name.
(argument_list [(pair) (hash_splat_argument)] [(array) (call) (constant) (element_reference) (false) (float) (identifier) (instance_variable) (integer)
  (nil) (scope_resolution) (simple_symbol) (string) (true)] @refuse)
; What a parameter in brackets has no place for.
(destructured_parameter [(block_parameter) (hash_splat_parameter) (keyword_parameter) (optional_parameter)] @refuse)
; A group of a regular expression that there is not.
((regex (string_content) @refuse) (#match? @refuse "(^|[^\\\\])[(][?]([^:=!<>#~a-z-]|$)"))
; A condition after a call is its modifier, and no argument.
((argument_list . [(if) (unless) (while) (until)]) @refuse (#not-match? @refuse "^[(]"))
; A choice between nothing.
((case) @refuse (#match? @refuse "^case\\s*[^;\n]*\\s+end$"))
; Clauses in an order in which no handler has them, or twice.
([(body_statement [(ensure) (else)] @refuse . (rescue) @refuse) (begin [(ensure) (else)] @refuse . (rescue) @refuse)
  (body_statement (ensure) @refuse . [(else) (ensure)] @refuse) (begin (ensure) @refuse . [(else) (ensure)] @refuse)
  (body_statement (else) @refuse . (else) @refuse) (begin (else) @refuse . (else) @refuse)])
; What nothing is assigned to, a jump in a list of values, a pattern in the place of a value, and a hash that is read as a block.
(assignment left: [(super) (self) (nil) (true) (false)] @refuse)
((assignment left: (call method: (identifier) @refuse)) (#match? @refuse "[?!]$"))
(right_assignment_list [(break) (next) (redo) (retry) (return)] @refuse)
(argument_list (parenthesized_statements (match_pattern) @refuse))
((call arguments: (argument_list . (hash)) @_given) @refuse (#match? @_given "^[{]"))

; A separator with nothing before it.
(block_parameters "|" . "," @refuse)
; What no argument is after, and one by its place after those by their names.
[(argument_list (hash_splat_argument) (splat_argument) @refuse) (argument_list (block_argument) "," @refuse)]
; Arguments that are those of the method around them.
(method parameters: (method_parameters (block_parameter !name))) @room.block
(singleton_method parameters: (method_parameters (block_parameter !name))) @room.block
(method parameters: (method_parameters (forward_parameter))) @room.block @room.forward
(singleton_method parameters: (method_parameters (forward_parameter))) @room.block @room.forward
((block_argument) @misplaced.block (#eq? @misplaced.block "&"))
(forward_argument) @misplaced.forward
