"""Fourteen texts that harm where they can, made of the truth, the text around it and the language's own signs."""

import random
import re
from collections.abc import Iterator

from benchmarks.guarantee.places import Place

_QUOTES = {"rust": ['"', 'r#"', "b'"], "go": ['"', "`", "'"], "json": ['"'], "java": ['"', '"""', "'"]}
_OPEN = {
    "python": ["# "],
    "html": ["<!-- ", "<div ", "<script>"],
    "lua": ["--[[ ", "[[", "--[==[ "],
    "ruby": ["%w[", "#{", "=begin"],
    "shell": ["$(", "${", "<<EOF"],
    "sql": ["/* ", "$$", "E'"],
    "css": ["/* ", "url("],
    "yaml": ["[", "{", "&"],
    "toml": ['"""', "[", "'''"],
    "json": ["/* ", "["],
    "tsx": ["/* ", "<div>", "{/* "],
    "php": ["/* ", "<<<X", "?>"],
}
_CLOSE = {
    "python": [")", "]", "}"],
    "html": ["</div>", "-->", "</body>"],
    "lua": ["end", ")", "until x"],
    "ruby": ["end", "}", ")"],
    "shell": ["fi", "done", "}", ")", ";;"],
    "yaml": ["]", "}"],
    "tsx": ["</div>", "}", "/>"],
    "css": ["}", "*/"],
}
_BRACES = ["return 1;", "x = 1;", "x();", "if (a) { b(); }", "break;", "case 1:"]
_STATEMENTS = {
    "python": ["return 1", "break", "yield x", "continue", "await x", "nonlocal x"],
    "html": ["return 1;", "<li>a"],
    "go": ["return 1", "x := 1", "x()", "if a { b() }", "break", "case 1:"],
    "ruby": ["return 1", "break", "yield", "redo", "when 1"],
    "kotlin": ["return 1", "x = 1", "x()", "if (a) { b() }", "break"],
    "swift": ["return 1", "x = 1", "x()", "if a { b() }", "break"],
    "scala": ["return 1", "x = 1", "x()", "if (a) { b() }", "case 1 =>"],
    "lua": ["return 1", "break", "x = 1", "goto a"],
    "shell": ["return 1", "x=(", "case a in", "a () {"],
    "sql": ["RETURN 1;", "END;", "BEGIN", "THEN"],
    "css": ["x();", "color red;", "return 1;", "@media {"],
    "json": ["return 1;", "x = 1", "undefined", "'a'"],
    "yaml": ["return 1;", "- a: b: c", "x: *y z", "? ? a"],
    "toml": ["return 1", "x = ", "a.b", "[x"],
    "rust": ["return 1;", "x = 1;", "x();", "if a { b(); }", "break;", "1 => 2,"],
}
_KEYWORDS = {
    "python": ["else:", "elif x:", "except:", "finally:"],
    "html": ["</p>", "<!DOCTYPE html>", "</html>"],
    "go": ["else {", "case 1:", "default:", "} else {"],
    "ruby": ["else", "elsif x", "rescue", "end end"],
    "lua": ["else", "elseif x then", "end end", "then"],
    "shell": ["else", "then", "esac", "do"],
    "sql": ["ELSE", "WHERE", "FROM a FROM b", "VALUES"],
    "css": ["@else", "!important !important", "}}"],
    "json": ["true false", ":", ",,"],
    "yaml": [": :", "%YAML 1.2", "--- a: b:", "@x"],
    "toml": ["[[x]", "= =", "true false"],
}
_ELSE = ["else", "} else {", "case 1:", "catch", "default:", "finally {"]
_ODD = ["\0", "\x1b[31m", "\x0c", "\r", "\u2028", "\x07", "\ufeff", "\x85", "\N{NO-BREAK SPACE}"]
_OTHERS = [
    "def f(x):\n    return x",
    "<div class='a'>b</div>",
    "function f() {",
    "SELECT * FROM a WHERE b = 'c'",
    "fn main() {",
    "x: int = 3",
    "#include <stdio.h>",
    "<?php echo 1; ?>",
    "- a: b",
    "let x = `${y}`",
    "class A < B; end",
    "@media (a) { b { c: d } }",
    "if x then y end",
]
_LONG = ["`${a", "<<EOF", '$"{a', '"""', "'''", 'R"(', "<<~A", "${", "#{", "{{", "%(", "\\"]


def harmful(place: Place, truth: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each."""
    name, data = place.language.name, place.data
    after = data[place.stop :].decode("utf-8", "replace").split("\n")
    lines = [line.strip() for line in after[1:] if line.strip()] or ["x"]
    bare = truth.rstrip().rstrip(";,")
    tokens = re.findall(r"\s*(?:\w+|[^\w\s])", truth)

    def one(table: dict[str, list[str]], other: list[str]) -> str:
        return rng.choice(table.get(name, other))

    yield "quote", bare + one(_QUOTES, ['"', "'", "`", '"""']) + rng.choice(["", "abc", "abc;"])
    yield "bracket", rng.choice([bare + rng.choice("([{"), rng.choice("([{") + truth, f"{bare}(a, ["])
    yield "closes", truth + rng.choice(["", " ", "\n"]) + one(_CLOSE, [")", "}", "]", "*/"])
    yield (
        "open",
        rng.choice([bare + " ", truth, "x ", ""])
        + one(_OPEN, ["/* ", "/** x ", "// \\"])
        + rng.choice(["", "x", "x;"]),
    )
    yield "statement", one(_STATEMENTS, _BRACES)
    yield "keyword", rng.choice(["", truth + "\n", ""]) + one(_KEYWORDS, _ELSE)
    yield "rest again", truth + (after[0] if after[0].strip() else " " + lines[0])
    yield "half", truth[: rng.randrange(1, max(len(truth), 2))]
    yield "next line", rng.choice([lines[0], "\n".join(lines[:2]), truth + "\n" + lines[0]])
    yield (
        "control",
        rng.choice([truth[: len(truth) // 2], truth]) + rng.choice(_ODD) + rng.choice(["", truth]),
    )
    yield (
        "indent",
        rng.choice([truth, bare])
        + "\n"
        + rng.choice(["", " ", "   ", "\t", "\t\t\t"])
        + one(_STATEMENTS, _BRACES),
    )
    yield "other language", rng.choice(_OTHERS)
    yield "long", rng.choice([bare, "x = ", ""]) + rng.choice(_LONG)
    changed = [*tokens]
    del changed[rng.randrange(len(changed))]
    yield "token", rng.choice(["".join(changed), truth + " " + truth, rng.choice(tokens) + truth]) or "x"
