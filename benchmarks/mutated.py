"""Bodies as a model writes them, without one: the true body changed in one place, or among such the true one.

The bot's rules do not depend on where fills come from, and these cost no time, so that `benchmarks.bot --mutants` can
judge the rules on many packages. A mutant fails fewer tests than most wrong fills of a model: it is harder to notice.
"""

import ast
import copy
import random
import textwrap
from collections.abc import Callable, Iterator

COUNT = 4  # of fills of a stub
TRUE = 0.5  # the share of stubs among whose fills the true body is
_SWAPPED: dict[type[ast.AST], Callable[[], ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def fills_of(body: str, indent: str, rng: random.Random) -> list[str]:
    """Return different fills for a function with this `body`, whose first line has no indentation: mostly mutants."""
    found = list(dict.fromkeys(mutants(body, indent)))
    rng.shuffle(found)
    if rng.random() < TRUE:
        found = [*found[: COUNT - 1], body]
        rng.shuffle(found)
    return found[:COUNT]


def mutants(body: str, indent: str) -> Iterator[str]:
    """Yield the mutants of a body: another operator, condition, constant or argument, or a statement less."""
    module = ast.parse(f"def f():\n{textwrap.indent(textwrap.dedent(indent + body), '    ')}\n")
    # The letters of an f-string can be nothing but a string.
    letters = {id(part) for one in ast.walk(module) if isinstance(one, ast.JoinedStr) for part in one.values}
    places = [n for n, node in enumerate(ast.walk(module)) if id(node) not in letters]
    for number in places:
        for change in (_swap, _settle, _shorten, _lose):
            mutant = copy.deepcopy(module)
            if change([*ast.walk(mutant)][number]):
                function = mutant.body[0]
                assert isinstance(function, ast.FunctionDef)
                lines = "\n".join(map(ast.unparse, map(ast.fix_missing_locations, function.body)))
                yield textwrap.indent(lines, indent).removeprefix(indent)


def _swap(node: ast.AST) -> bool:
    """Swap an operator of `node` for another; return whether it has one."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
        node.ops[0] = _SWAPPED[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPPED:
        node.op = _SWAPPED[type(node.op)]()  # type: ignore[assignment]
    else:
        return False
    return True


def _settle(node: ast.AST) -> bool:
    """Make a condition true, or a constant another one; return whether `node` is one."""
    if isinstance(node, ast.If | ast.IfExp):
        node.test = ast.Constant(value=True)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | str):
        node.value = not node.value if isinstance(node.value, bool | str) else node.value + 1
    else:
        return False
    return True


def _shorten(node: ast.AST) -> bool:
    """Leave out the last argument, operand or value of `node`; return whether it has one to spare."""
    for name, least in (("keywords", 1), ("args", 2), ("values", 3), ("elts", 2)):
        found = getattr(node, name, None)
        if isinstance(found, list) and len(found) >= least:
            found.pop()
            return True
    return False


def _lose(node: ast.AST) -> bool:
    """Leave out the first statement of several; return whether `node` has them."""
    found = getattr(node, "body", None)
    if not isinstance(found, list) or len(found) < 2:
        return False
    found.pop(0)
    return True
