; A closing tag that closes nothing, which is no error to the parser.
(erroneous_end_tag) @refuse
