; Where gaps are in Python. The code takes whole nodes and trims them itself; what every capture means:
;   @function.outer .name .colon .body   a function, its name, the colon of its header, its block
;   @docstring                           a statement that is a string; a docstring where it is a body's first
;   @stub                                a statement that says "not written yet"; a stub where it is a body's only one
;   @stub.skip                           a function whose empty body is meant: abstract, an overload, a Protocol's
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

(function_definition
  name: (identifier) @function.name
  ":" @function.colon
  body: (block) @function.body) @function.outer

(block (expression_statement . (string) .) @docstring)
(block (expression_statement . (concatenated_string) .) @docstring)

(block (pass_statement) @stub)
(block (expression_statement . (ellipsis) .) @stub)
((block (raise_statement . (identifier) @_raised) @stub)
  (#any-of? @_raised "NotImplementedError" "NotImplemented"))
((block (raise_statement . (call function: (identifier) @_raised)) @stub)
  (#any-of? @_raised "NotImplementedError" "NotImplemented"))

((decorated_definition
  (decorator [(identifier) @_mark (attribute attribute: (identifier) @_mark)])
  definition: (function_definition) @stub.skip)
  (#any-of? @_mark "abstractmethod" "abstractproperty" "abstractclassmethod" "abstractstaticmethod" "overload"))
((class_definition
  superclasses: (argument_list [(identifier) @_base (attribute attribute: (identifier) @_base)
    (subscript value: (identifier) @_base) (subscript value: (attribute attribute: (identifier) @_base))])
  body: (block [(function_definition) @stub.skip (decorated_definition (function_definition) @stub.skip)]))
  (#eq? @_base "Protocol"))
