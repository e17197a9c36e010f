; Where gaps are in the elements of JSX and TSX. docs/adding-a-language.md tells what every capture means.

(jsx_expression (expression) @expression)

; What stands between braces is bounded by them, as a statement is by those of its block.
(jsx_expression (expression) @statement)

; Text between tags.
(jsx_text) @string

; The grammar lets any tag close an element.
((jsx_element
  open_tag: (jsx_opening_element name: (_) @_begun)
  close_tag: (jsx_closing_element name: (_) @refuse))
  (#not-eq? @_begun @refuse))
(jsx_opening_element (jsx_attribute) @once)
(jsx_self_closing_element (jsx_attribute) @once)
; Among attributes an expression is spread.
((jsx_opening_element attribute: (jsx_expression) @refuse) (#not-match? @refuse "^[{]\\s*([.]{3}|/[*])"))
((jsx_self_closing_element attribute: (jsx_expression) @refuse) (#not-match? @refuse "^[{]\\s*([.]{3}|/[*])"))
; An element that is called, or whose part is taken, without brackets around it.
(call_expression function: [(jsx_element) (jsx_self_closing_element)] @refuse)
(member_expression object: [(jsx_element) (jsx_self_closing_element)] @refuse)
(subscript_expression object: [(jsx_element) (jsx_self_closing_element)] @refuse)
