; Parsed, and refused by SQL: a word of the language in the place of a name, a name without a letter, two strings in a row,
; and a path with a space.
((identifier) @refuse
  (#match? @refuse "^(?i:and|as|case|create|distinct|else|except|from|group|having|in|into|not|null|on|or|order|select|then|union|when|where)$"))
([(column_definition name: (literal) @refuse) (column (literal) @refuse) (column name: (literal) @refuse) (identifier) @refuse]
  (#eq? @refuse "\"\""))
((literal) @refuse (#match? @refuse "^'[^'\n]*'[ \t]+'"))
((path_expression) @refuse (#match? @refuse ":\\s"))
; A subscript without an index; after a type it is a list's.
((subscript expression: (field) subscript: (field) @refuse) (#eq? @refuse ""))
; A second name for an argument.
(invocation parameter: (term value: (_) . alias: (_) @refuse))
; A word that begins a clause or a statement in the place of a parameter or its type.
([(function_argument (identifier) @refuse) (function_argument custom_type: (object_reference name: (identifier) @refuse))]
  (#match? @refuse "^(?i:begin|declare|delete|end|execute|fetch|for|if|insert|limit|loop|offset|perform|return|returning|returns|set|update|using|values|with)$"))
