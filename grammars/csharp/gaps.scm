; Where gaps are in C#. docs/adding-a-language.md tells what every capture means.
; A capture that begins with an underscore only serves a predicate. No pattern puts a quantifier beside an
; anchor, because tree-sitter then matches nodes that are not neighbours.

; Where two patterns match the same function, the one that knows its name counts. What stands after an arrow has no
; braces and is an expression. An accessor has the name of its property.
(method_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(local_function_statement name: (_) @function.name body: (block) @function.body) @function.outer
(constructor_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(destructor_declaration name: (_) @function.name body: (block) @function.body) @function.outer
(operator_declaration operator: _ @function.name body: (block) @function.body) @function.outer
(conversion_operator_declaration type: (_) @function.name body: (block) @function.body) @function.outer
(accessor_declaration body: (block) @function.body) @function.outer
(property_declaration
  name: (_) @function.name
  accessors: (accessor_list (accessor_declaration body: (block) @function.body) @function.outer))
(event_declaration
  name: (_) @function.name
  accessors: (accessor_list (accessor_declaration body: (block) @function.body) @function.outer))
(lambda_expression body: (block) @function.body) @function.outer
(anonymous_method_expression (block) @function.body) @function.outer
(variable_declarator
  name: (_) @function.name
  (lambda_expression body: (block) @function.body) @function.outer)
(variable_declarator
  name: (_) @function.name
  (anonymous_method_expression (block) @function.body) @function.outer)

(class_declaration name: (_) @class.name body: (_) @class.body) @class.outer
(struct_declaration name: (_) @class.name body: (_) @class.body) @class.outer
(record_declaration name: (_) @class.name body: (_) @class.body) @class.outer
(interface_declaration name: (_) @class.name body: (_) @class.body) @class.outer
(enum_declaration name: (_) @class.name body: (_) @class.body) @class.outer
(namespace_declaration name: (_) @class.name body: (_) @class.body) @class.outer

; The braces of a switch that is a value are children of the node itself. What holds accessors is a block, for it has
; a name only by its property.
(if_statement consequence: (block) @block.body) @block.outer
(if_statement alternative: (block) @block.body) @block.outer
(for_statement body: (block) @block.body) @block.outer
(foreach_statement body: (block) @block.body) @block.outer
(while_statement body: (block) @block.body) @block.outer
(do_statement body: (block) @block.body) @block.outer
(switch_statement body: (switch_body) @block.body) @block.outer
(switch_expression) @block.body @block.outer
(try_statement body: (block) @block.body) @block.outer
(catch_clause body: (block) @block.body) @block.outer
(finally_clause (block) @block.body) @block.outer
(using_statement body: (block) @block.body) @block.outer
(lock_statement (block) @block.body) @block.outer
(fixed_statement (block) @block.body) @block.outer
(checked_statement (block) @block.body) @block.outer
(unsafe_statement (block) @block.body) @block.outer
(block (block) @block.body @block.outer)
(switch_section (block) @block.body @block.outer)
(property_declaration accessors: (accessor_list) @block.body) @block.outer
(indexer_declaration accessors: (accessor_list) @block.body) @block.outer
(event_declaration accessors: (accessor_list) @block.body) @block.outer

[(argument_list) (attribute_argument_list)] @arguments
[(parameter_list) (bracketed_parameter_list)] @parameters
[(initializer_expression) (collection_expression) (tuple_expression)] @collection

; A supertype made of supertypes is refused inside a parent, so the two below it stand for it. A name alone is no
; statement, so the neutral value is a call. What is assigned to is none that can be replaced.
(variable_declarator "=" [(lvalue_expression) (non_lvalue_expression)] @expression)
(assignment_expression right: [(lvalue_expression) (non_lvalue_expression)] @expression)
(property_declaration value: [(lvalue_expression) (non_lvalue_expression)] @expression)
(arrow_expression_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(enum_member_declaration value: (_) @expression)
(parameter "=" [(lvalue_expression) (non_lvalue_expression)] @expression)
(return_statement [(lvalue_expression) (non_lvalue_expression)] @expression)
(yield_statement [(lvalue_expression) (non_lvalue_expression)] @expression)
(throw_statement [(lvalue_expression) (non_lvalue_expression)] @expression)
(if_statement condition: (_) @expression)
(while_statement condition: (_) @expression)
(do_statement condition: (_) @expression)
(for_statement condition: (_) @expression)
(for_statement update: [(lvalue_expression) (non_lvalue_expression)] @expression)
(foreach_statement right: (_) @expression)
(switch_statement value: (_) @expression)
(switch_expression . [(lvalue_expression) (non_lvalue_expression)] @expression)
(switch_expression_arm "=>" [(lvalue_expression) (non_lvalue_expression)] @expression)
(when_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(catch_filter_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(using_statement [(lvalue_expression) (non_lvalue_expression)] @expression)
(lock_statement [(lvalue_expression) (non_lvalue_expression)] @expression)
(argument [(lvalue_expression) (non_lvalue_expression)] @expression)
(attribute_argument [(lvalue_expression) (non_lvalue_expression)] @expression)
(parenthesized_expression [(lvalue_expression) (non_lvalue_expression)] @expression)
(lambda_expression body: [(lvalue_expression) (non_lvalue_expression)] @expression)
(initializer_expression [(lvalue_expression) (non_lvalue_expression)] @expression)
(expression_element [(lvalue_expression) (non_lvalue_expression)] @expression)
(spread_element [(lvalue_expression) (non_lvalue_expression)] @expression)
(with_initializer "=" [(lvalue_expression) (non_lvalue_expression)] @expression)
(interpolation [(lvalue_expression) (non_lvalue_expression)] @expression)
(from_clause "in" [(lvalue_expression) (non_lvalue_expression)] @expression)
(where_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(order_by_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(select_clause [(lvalue_expression) (non_lvalue_expression)] @expression)
(expression_statement
  [(invocation_expression) (await_expression) (object_creation_expression) (conditional_access_expression)
    (postfix_unary_expression) (prefix_unary_expression)] @expression)

[(using_directive) (extern_alias_directive) (namespace_declaration) (file_scoped_namespace_declaration)
  (class_declaration) (struct_declaration) (record_declaration) (interface_declaration) (enum_declaration)
  (delegate_declaration) (method_declaration) (constructor_declaration) (destructor_declaration)
  (operator_declaration) (conversion_operator_declaration) (property_declaration) (indexer_declaration)
  (event_declaration) (event_field_declaration) (field_declaration)] @statement
[(break_statement) (checked_statement) (continue_statement) (do_statement) (expression_statement) (fixed_statement)
  (for_statement) (foreach_statement) (goto_statement) (if_statement) (labeled_statement)
  (local_declaration_statement) (local_function_statement) (lock_statement) (return_statement) (switch_statement)
  (throw_statement) (try_statement) (unsafe_statement) (using_statement) (while_statement)
  (yield_statement)] @statement

[(string_literal) (verbatim_string_literal) (raw_string_literal) (interpolated_string_expression)] @string
(comment) @comment

[(using_directive) (extern_alias_directive) (file_scoped_namespace_declaration)] @import

; A constructor that only hands its arguments on is written as meant.
(constructor_declaration (constructor_initializer)) @stub.skip
; What does nothing until somebody overrides it is written as meant.
((method_declaration (modifier "virtual") returns: (_) @_type body: (block) @_body) @stub.skip
  (#eq? @_type "void")
  (#match? @_body "^[{][ \\t]*[}]$"))
((interface_declaration
  body: (declaration_list (method_declaration returns: (_) @_type body: (block) @_body) @stub.skip))
  (#eq? @_type "void")
  (#match? @_body "^[{][ \\t]*[}]$"))
((throw_statement (object_creation_expression type: (_) @_thrown)) @stub
  (#match? @_thrown "^(System\\.)?NotImplementedException$"))
((throw_statement (object_creation_expression
  arguments: (argument_list . (argument (string_literal) @_message)))) @stub
  (#match? @_message "([Nn]ot( yet)? implemented|NOT IMPLEMENTED|[Uu]nimplemented|[Ii]mplement me|TODO|^.[Tt]odo(:.*)?.$)"))

; These are called in the header of a constructor only.
(invocation_expression function: ["this" "base"] @refuse)

; The grammar takes these for names.
((identifier) @refuse
  (#any-of? @refuse "abstract" "break" "case" "catch" "class" "const" "continue" "default" "delegate" "do" "else" "enum"
    "event" "explicit" "extern" "finally" "fixed" "for" "foreach" "goto" "if" "implicit" "in" "interface" "internal" "is"
    "lock" "namespace" "operator" "out" "override" "params" "private" "protected" "public" "readonly" "ref" "return" "sealed"
    "static" "struct" "switch" "throw" "try" "using" "virtual" "while"))

; Statements of a file come before its types, members are in types, a constructor has the name of its own. What leaves a
; loop is in one.
[(class_declaration) (struct_declaration) (interface_declaration) (enum_declaration) (record_declaration)
  (delegate_declaration) (namespace_declaration) (file_scoped_namespace_declaration)] @wall
[(lambda_expression) (anonymous_method_expression) (local_function_statement)] @wall
(global_statement) @misplaced.after
((global_statement) @refuse . [(global_attribute) (using_directive) (namespace_declaration) (file_scoped_namespace_declaration)])
(attribute_argument (initializer_expression) @refuse)
(namespace_declaration body: (declaration_list [(constructor_declaration) (destructor_declaration) (event_declaration)
  (event_field_declaration) (field_declaration) (indexer_declaration) (method_declaration) (operator_declaration)
  (property_declaration)] @misplaced))
((class_declaration name: (_) @_class body: (declaration_list (constructor_declaration name: (_) @misplaced)))
  (#not-eq? @misplaced @_class))
((struct_declaration name: (_) @_class body: (declaration_list (constructor_declaration name: (_) @misplaced)))
  (#not-eq? @misplaced @_class))
((record_declaration name: (_) @_class body: (declaration_list (constructor_declaration name: (_) @misplaced)))
  (#not-eq? @misplaced @_class))
(interface_declaration
  body: (declaration_list [(constructor_declaration) (field_declaration . (variable_declaration))] @misplaced))
[(for_statement) (foreach_statement) (while_statement) (do_statement) (switch_statement)] @room.loop
[(break_statement) (continue_statement)] @misplaced.loop
([(method_declaration parameters: (parameter_list (parameter !type) @refuse))
  (constructor_declaration parameters: (parameter_list (parameter !type) @refuse))])

; A `try` without its other half, and a declaration that is no statement of its block, or has modifiers of a member.
(try_statement body: (block) @refuse .)
(if_statement consequence: (local_declaration_statement) @refuse)
(block (local_declaration_statement (modifier) @refuse (#any-of? @refuse "public" "protected" "private" "internal")))
; A declaration among arguments is one that is given out, and what a class is made of stands once, after its name.
((argument_list (argument (declaration_expression type: [(identifier) (generic_name) (predefined_type)])) @refuse)
  (#not-match? @refuse "^([A-Za-z0-9_]+\\s*:\\s*)?out\\b"))
(class_declaration (base_list) (type_parameter_list) @refuse)
(class_declaration (base_list) (base_list) @refuse)
(class_declaration !parameters (base_list (argument_list) @refuse))
; Braces are assigned only where something is declared or made.
[(argument (assignment_expression right: (initializer_expression) @refuse))
  (expression_statement (assignment_expression right: (initializer_expression) @refuse))
  (parenthesized_expression (assignment_expression right: (initializer_expression) @refuse))
  (lambda_expression body: (assignment_expression right: (initializer_expression) @refuse))
  (return_statement (assignment_expression right: (initializer_expression) @refuse))]

; A separator with nothing before it.
[(enum_member_declaration_list "{" . "," @refuse) (initializer_expression "{" . "," @refuse)]
; An accessor that is there already.
(accessor_list (accessor_declaration) @once)
