; Where gaps are in Python. The code takes whole nodes and trims them itself; what every capture means:
;   @function.outer .name .colon .body   a function, its name, the colon of its header, its block
;   @class.outer .name .colon .body      the same of a class
;   @block.outer .colon .body            the same of what if, for, with and their like hold
;   @arguments @parameters @collection   lists between brackets, with the brackets
;   @expression                          a value that stands where it could be another: argument, condition, right side
;   @statement                           a direct part of a block or of the file
;   @string @comment                     strings with their quotes; comments
;   @import                              a statement of the file that imports
;   @docstring                           a statement that is a string; a docstring where it is a body's first
;   @stub                                a statement that says "not written yet"; a stub where it is a body's only one
;   @misplaced.NAME @room.NAME @wall     a statement that has to be in a room, such as a loop; the room; what ends rooms
;   @stub.skip                           a function whose empty body is meant: abstract, an overload, a Protocol's
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

(function_definition
  name: (identifier) @function.name
  ":" @function.colon
  body: (block) @function.body) @function.outer

(block (expression_statement . (string) .) @docstring)
(block (expression_statement . (concatenated_string) .) @docstring)
(module (expression_statement . (string) .) @docstring)
(module (expression_statement . (concatenated_string) .) @docstring)

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
  body: (block [
    (function_definition) @stub.skip
    (decorated_definition (function_definition) @stub.skip)
    (if_statement (block [(function_definition) @stub.skip (decorated_definition (function_definition) @stub.skip)]))
    (if_statement (_ (block [
      (function_definition) @stub.skip
      (decorated_definition (function_definition) @stub.skip)])))]))
  (#any-of? @_base "Protocol" "Interface"))
((if_statement
  condition: [(identifier) @_checking (attribute attribute: (identifier) @_checking)]
  consequence: (block [(function_definition) @stub.skip (decorated_definition (function_definition) @stub.skip)]))
  (#eq? @_checking "TYPE_CHECKING"))

(class_definition
  name: (identifier) @class.name
  ":" @class.colon
  body: (block) @class.body) @class.outer

(if_statement ":" @block.colon consequence: (block) @block.body) @block.outer
(elif_clause ":" @block.colon consequence: (block) @block.body) @block.outer
(else_clause ":" @block.colon body: (block) @block.body) @block.outer
(for_statement ":" @block.colon body: (block) @block.body) @block.outer
(while_statement ":" @block.colon body: (block) @block.body) @block.outer
(with_statement ":" @block.colon body: (block) @block.body) @block.outer
(try_statement ":" @block.colon body: (block) @block.body) @block.outer
(except_clause ":" @block.colon (block) @block.body) @block.outer
(finally_clause ":" @block.colon (block) @block.body) @block.outer
(case_clause ":" @block.colon consequence: (block) @block.body) @block.outer

(call arguments: [(argument_list) (generator_expression)] @arguments)
(class_definition superclasses: (argument_list) @arguments)
(parameters) @parameters
[(list) (tuple) (set) (dictionary) (list_comprehension) (set_comprehension) (dictionary_comprehension)] @collection

(assignment right: (_) @expression)
(augmented_assignment right: (_) @expression)
(named_expression value: (_) @expression)
(return_statement (_) @expression)
(yield (_) @expression)
(raise_statement . (_) @expression)
(assert_statement . (_) @expression)
(if_statement condition: (_) @expression)
(elif_clause condition: (_) @expression)
(while_statement condition: (_) @expression)
(for_statement right: (_) @expression)
(for_in_clause right: (_) @expression)
(if_clause (_) @expression)
(with_item value: (_) @expression)
(argument_list (_) @expression)
(keyword_argument value: (_) @expression)
(default_parameter value: (_) @expression)
(typed_default_parameter value: (_) @expression)
(pair value: (_) @expression)
(subscript subscript: (_) @expression)
(lambda body: (_) @expression)
(expression_statement [(call) (await) (attribute) (identifier) (subscript) (binary_operator) (comparison_operator)
  (boolean_operator) (yield) (conditional_expression) (tuple)] @expression)
(list (_) @expression)
(tuple (_) @expression)
(set (_) @expression)

(module (_) @statement)
(block (_) @statement)

(string) @string
(comment) @comment

(module [(import_statement) (import_from_statement) (future_import_statement)] @import)

; What is only right in a function, an asynchronous one, or a loop. A cell of a notebook may wait for something.
[(function_definition) (lambda)] @room.function @wall
[(class_definition) (import_statement) (import_from_statement)] @wall
(module) @room.file
(import_from_statement (wildcard_import)) @misplaced.file
[(return_statement) (yield) (nonlocal_statement)] @misplaced.function
[(module) (function_definition "async")] @room.async
[(await) (for_statement "async") (with_statement "async")] @misplaced.async
[(for_statement) (while_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop

; A name that is there once.
(argument_list (keyword_argument) @once)
