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
; Rules where only declarations are, and declarations where only rules are.
((at_rule (at_keyword) @_rule (block (rule_set) @refuse))
  (#any-of? @_rule "@font-face" "@counter-style" "@property" "@viewport" "@color-profile" "@font-palette-values"))
(stylesheet (declaration) @refuse)
; A value that is read as a selector, and a variable without a name.
(selectors (string_value) @refuse)
((pseudo_class_selector) @refuse (#match? @refuse "[A-Za-z]:\\s"))
((call_expression (function_name) @_called (arguments) @refuse) (#eq? @_called "var") (#match? @refuse "^[(]\\s*[)]$"))
