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
(method body: (body_statement [(class) (module)] @misplaced))
[(program) (class) (module) (singleton_class)] @room.file
(assignment left: (constant)) @misplaced.file
(rescue) @room.handler
(retry) @misplaced.handler
[(if) (elsif) (unless) (case) (case_match) (body_statement (rescue)) (begin (rescue))] @room.choice
(else) @misplaced.choice
((identifier) @refuse
  (#any-of? @refuse "begin" "case" "do" "else" "elsif" "end" "ensure" "redo" "rescue" "retry" "then" "unless" "until" "when"
    "while"))
