; Parsed, and refused by PHP: what leaves a loop outside of one, what belongs to a file in a function, and a keyword in
; the place of a name.
[(function_definition) (method_declaration) (anonymous_function) (arrow_function) (class_declaration)
  (namespace_definition) (namespace_use_declaration)] @wall
[(for_statement) (foreach_statement) (while_statement) (do_statement) (switch_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop
(compound_statement [(const_declaration) (namespace_definition) (namespace_use_declaration)] @misplaced)
([(argument (name) @refuse .) (return_statement (name) @refuse) (expression_statement (name) @refuse)
  (assignment_expression right: (name) @refuse) (named_label_statement (name) @refuse)
  (subscript_expression (name) @refuse) (array_element_initializer (name) @refuse)]
  (#match? @refuse
    "^([bB]reak|[cC]ase|[cC]atch|[cC]lass|[cC]ontinue|[dD]efault|[eE]cho|[eE]lse|[eE]lseif|[fF]inally|[iI]f|[rR]eturn|[wW]hile)$"))
; The next place of a list is no value.
([(return_statement (subscript_expression) @refuse) (assignment_expression right: (subscript_expression) @refuse)]
  (#match? @refuse "\\[\\s*\\]$"))
; A property with hooks has one.
((property_hook_list) @refuse (#match? @refuse "^[{]\\s*[}]$"))
; What is declared is not followed by what belongs to a file: its semicolon is missing.
(declare_statement [(namespace_definition) (namespace_use_declaration) (const_declaration) (function_definition)
  (class_declaration) (interface_declaration) (trait_declaration) (enum_declaration)] @refuse)
; A path of names holds no space.
((qualified_name) @refuse (#match? @refuse "\\s"))

; A separator with nothing before it.
(formal_parameters "(" . "," @refuse)
; What is new is called in brackets only.
(function_call_expression function: (object_creation_expression) @refuse)
