; Parsed, and refused by CSS: a declaration without its semicolon, which takes in the next one, signs that no value holds,
; and a value that is important twice.
((declaration (plain_value) @refuse)
  (#match? @refuse "^[A-Za-z-]+:") (#not-match? @refuse "^progid:"))
((declaration (plain_value) @refuse) (#match? @refuse "[`@]"))
((declaration (_ (unit) @refuse)) (#match? @refuse "[`@]"))
(declaration (important) . (important) @refuse)
((postcss_statement (plain_value) @refuse) (#match? @refuse ":$"))
