; A closing tag that closes nothing, which is no error to the parser.
(erroneous_end_tag) @refuse

; Parsed, and refused by HTML: text and elements where only certain elements are, a name that is none, an attribute twice
; and an element that closes itself. Templates are text.
((element (start_tag (tag_name) @_tag) [(text) (entity)] @refuse)
  (#any-of? @_tag "head" "table" "tbody" "thead" "tfoot" "tr" "colgroup") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
((element (start_tag (tag_name) @_tag) (element (start_tag (tag_name) @_inner) [(text) (entity)] @refuse))
  (#eq? @_tag "head") (#any-of? @_inner "base" "link" "meta") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
((element (start_tag (tag_name) @_tag) (element (start_tag (tag_name) @_body)) . (text) @refuse)
  (#eq? @_tag "html") (#eq? @_body "body") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
((document (element (start_tag (tag_name) @_tag)) . (text) @refuse)
  (#eq? @_tag "html") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
((element (start_tag (tag_name) @_tag) (element [(start_tag (tag_name) @refuse) (self_closing_tag (tag_name) @refuse)]))
  (#eq? @_tag "head")
  (#any-of? @refuse "a" "article" "aside" "b" "button" "div" "footer" "form" "h1" "h2" "h3" "header" "i" "img" "input" "li"
    "main" "nav" "ol" "p" "section" "span" "table" "td" "tr" "ul"))
((element (start_tag (tag_name) @_tag) (element (start_tag (tag_name) @refuse)))
  (#any-of? @_tag "table" "tbody" "thead" "tfoot" "tr")
  (#any-of? @refuse "a" "button" "div" "h1" "h2" "h3" "img" "li" "ol" "p" "section" "span" "ul"))
((tag_name) @refuse (#not-match? @refuse "^[A-Za-z][A-Za-z0-9:._-]*$"))
((attribute_name) @refuse (#match? @refuse "^[<`\"'=]|[,;]|^[(\\[]$"))
((attribute (attribute_value) @refuse) (#match? @refuse "[`\"'=<]"))
; Each pair of attributes would be a match, so that a tag of 2,000 of them would take minutes.
(_ (attribute (attribute_name) (quoted_attribute_value)) @once)
((_ (attribute . (attribute_name) @_name .) @once)
  (#any-of? @_name "allowfullscreen" "async" "autofocus" "autoplay" "checked" "controls" "defer" "disabled" "formnovalidate"
    "hidden" "inert" "ismap" "itemscope" "multiple" "muted" "nomodule" "novalidate" "playsinline" "readonly" "required"
    "reversed" "selected"))
((self_closing_tag (tag_name) @refuse)
  (#any-of? @refuse "a" "b" "body" "button" "div" "form" "h1" "h2" "h3" "head" "html" "i" "label" "li" "nav" "ol" "p"
    "section" "select" "span" "table" "td" "textarea" "th" "tr" "ul"))
((element (start_tag (tag_name) @_tag) [(text) (entity)] @refuse)
  (#eq? @_tag "html") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
; What is before the type of a document, and a second type.
([(element (doctype) @refuse) (document (doctype) . (doctype) @refuse)])
((document [(text) (entity) (element)] @refuse . (doctype)) (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
((document (text) @refuse . (element (start_tag (tag_name) @_tag)))
  (#any-of? @_tag "body" "head" "html") (#not-match? @refuse "[{<][{%#?]|[%}?][>}]"))
