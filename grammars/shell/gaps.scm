; Parsed, and refused by a shell: a redirection whose file is on the next line, a body without a command, and a reserved
; word where it ends nothing.
((file_redirect) @refuse (#match? @refuse "^[0-9]*[<>&|]+[ \t]*[\r\n]"))
((compound_statement) @refuse (#match? @refuse "^[{](\\s*[}]$|[^\\s{(])"))
((command name: (command_name) @refuse) (#any-of? @refuse "do" "then" "else" "elif" "fi" "done" "esac" "}" "in"))
([(program ";;" @refuse) (if_statement ";;" @refuse) (else_clause ";;" @refuse) (elif_clause ";;" @refuse)
  (do_group ";;" @refuse) (compound_statement ";;" @refuse) (subshell ";;" @refuse)])
((simple_expansion) @refuse (#match? @refuse "^[$]\\s"))
((if_statement) @refuse (#match? @refuse "([ \\t\\n;]then\\s*\\n|[\\n;]\\s*then)\\s+(fi|else|elif)([ \\t\\n;]|$)"))
; A word that a quote or a value is a part of is no word of the language.
([(for_statement) (if_statement) (while_statement)] @refuse (#match? @refuse "[;\n][ \t]*(then|do|else|elif)[$\"'`]"))
