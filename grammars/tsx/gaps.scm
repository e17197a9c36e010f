; What TSX has beyond TypeScript, whose query stands before this one.

(jsx_expression (expression) @expression)

; What stands between braces is bounded by them, as a statement is by those of its block.
(jsx_expression (expression) @statement)
