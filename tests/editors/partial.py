"""Texts of which a part is accepted, and what that must not leave: a bracket or a string without its end."""

import random

from dg_lsp.filling.pairs import pairs_of
from dg_lsp.gaps import Edit
from dg_lsp.source.brackets import state_at
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

# Texts at the beginning of a line, by language; all brackets and strings in them are closed in them.
TEXTS = {
    "python": (
        'print("hello, world", names[0], sep="")',
        'total = sum(value["x"] for value in found.values() if value)',
        "result = [f(a, (b, c)), {1: (2, [3])}][0].name",
        'if fits(a, "b)"):\n    print({"c": [1, 2]})\nprint(g(h()))',
        'message = f"{name(1)} of {count}" + "(" + \'"\'',
        'items = [\n    "first",\n    second(2),\n]',
        'call(\n    one,\n    two("x"),\n)[0].three("y")',
    ),
    "javascript": (
        "const found = items.filter((item) => item.ok).map(f);",
        "if (ready) {\n  start(`at ${place(1)}!`);\n} else {\n  stop(['a', \"b\"]);\n}",
        "app.get('/x', (request, response) => {\n  response.send({ ok: [1, 2] });\n});",
        "const later = new Promise((resolve) => setTimeout(resolve, 10));",
        'const text = "it\'s (open" + call(a[0]);',
    ),
    "go": (
        'if err := open("a"); err != nil {\n\treturn nil, wrap(err, "b")\n}',
        'names := map[string][]int{"a": {1, 2}, "b": nil}',
        "go func() {\n\tdone <- work(items[0])\n}()",
    ),
    "rust": (
        'let found = items.iter().map(|one| one.name("x")).collect::<Vec<_>>();',
        "match value {\n    Some('\"') => f(&[1, 2]),\n    _ => g(),\n}",
    ),
    "java": (
        'List<String> names = new ArrayList<>(List.of("a", "b"));',
        "for (int i = 0; i < size(); i++) {\n  sum += values[i] * (i + 1);\n}",
    ),
}

SUFFIXES = {"python": "py", "javascript": "js", "go": "go", "rust": "rs", "java": "java"}


def script(seed: int) -> tuple[str, str, list[str]]:
    """Return a language, a text in it, and the parts of it that are accepted one after another, words and lines."""
    chance = random.Random(seed)
    language = chance.choice(sorted(TEXTS))
    return (
        language,
        chance.choice(TEXTS[language]),
        chance.choices(("word", "line"), (4, 1), k=chance.randint(1, 8)),
    )


def pairs(language: str, text: str) -> list[list[int]]:
    """Return the pairs of `text`, as the server sends them; the text is in ASCII."""
    return [[*pair] for pair in pairs_of(Document("file:///a", language, 0, b""), Edit(0, 0, text))]


def left_open(language: str, text: str) -> str:
    """Return the brackets and strings that nothing closes in `text`."""
    data = text.encode()
    state = state_at(load_language(language), data, len(data), 0)
    return (state.brackets + state.string).decode()
