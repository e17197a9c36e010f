; Parsed, and refused by CSS: a declaration without its semicolon, which takes in the next one, signs that no value holds,
; and text after `!important`.
([(declaration (plain_value) @refuse) (binary_expression (plain_value) @refuse)]
  (#match? @refuse "^[A-Za-z-]+:") (#not-match? @refuse "^progid:"))
((declaration (plain_value) @refuse) (#match? @refuse "[`@]"))
((declaration (_ (unit) @refuse)) (#match? @refuse "[`@]"))
((declaration (important) . (_) @refuse) (#not-match? @refuse "^/[*]"))
((postcss_statement (plain_value) @refuse) (#match? @refuse ":$"))
(arguments (important) @refuse)
(keyframe_block (block [(at_rule) (media_statement) (rule_set) (supports_statement) (keyframes_statement) (import_statement)] @refuse))
; At-rules in a rule, if others of the file are so.
(rule_set) @wall
(rule_set (block [(keyframes_statement) (media_statement) (supports_statement)] @misplaced))
((postcss_statement (at_keyword) @refuse) (#any-of? @refuse "@else" "@if" "@return" "@while"))
((at_rule (at_keyword) @refuse) (#any-of? @refuse "@else" "@if" "@return" "@while"))
