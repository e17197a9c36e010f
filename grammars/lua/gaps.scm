; Parsed, and refused by Lua: what leaves a loop outside of one, and a keyword in the place of a name.
[(function_declaration) (function_definition)] @wall
[(for_statement) (while_statement) (repeat_statement)] @room.loop
(break_statement) @misplaced.loop
((identifier) @refuse
  (#any-of? @refuse "and" "break" "do" "else" "elseif" "end" "for" "function" "goto" "if" "in" "local" "not" "or" "repeat"
    "return" "then" "until" "while"))
((identifier) @refuse (#match? @refuse "[$`?@!\\\\]"))
