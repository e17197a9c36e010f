"""Plain English: words and turns that comments, docstrings, messages, help and pages do not use."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A part of a string that a model reads, whose answers may change with each word.
PROMPTS = {"Further down the file goes on as follows; do not write that again."}
# A word or turn, and what to write in its place.
_PASSIVE = "typed|written|asked|wanted|told|there|behind|healed|said|given|sent|shown|meant|needed|left|to be"
INSTEAD = {
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"reckon\w*": "estimate, compute",
    r"stands?(?!-)|stood|standing": "is, is in, contains, hangs, means",
    r"settled": "final, stable",
    r"told": "say, report; given",
    r"shut": "closed",
    r"(?:go|goes|going|went) round": "repeats itself, circles",
    r"lacks?|lacked|lacking": "missing, has no",
    r"as yet": "yet",
    r"goes? on|went on|gone on|going on": "continue",
    r"anew": "again",
    r"(?:comes?|brings?|brought) along": "is included, has",
    r"round (?:the (?:cursor|gap|canvas)|a (?:cursor|gap|canvas)|it)": "around",
    r"what has (?:begun|come|ended)": "a noun: the fills, the texts",
    rf"what (?:is|was|are) (?:{_PASSIVE})": "a noun: the text, the request, the option",
    r"what (?:stands|comes|came|lies|goes)": "a noun: the text, the line",
    r"whose turn it is|who asks|who waits|whoever \w+": "a noun: the client, the request, the administrator",
}
BANNED = {re.compile(rf"\b(?:{turn})\b", re.IGNORECASE): instead for turn, instead in INSTEAD.items()}
# A docstring begins with a noun or an imperative verb.
BEGINNINGS = re.compile(
    r"(?:What|Whether|How|Where|Which|Who|Whose|Why|When|That|Those|Such|It|Of|For|`\w+`,)\b", re.IGNORECASE
)
# The prose of a file that is not Python: its comments and its strings.
PROSE = {
    ".ts": re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\\n]|\\.)*`', re.DOTALL),
    ".lua": re.compile(r'--.*|"(?:[^"\\\n]|\\.)*"'),
    ".json": re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    ".md": re.compile(r".*"),
    ".txt": re.compile(r".*"),
}
CODE = {
    ".md": re.compile(r"^ *```.*?^ *```|`[^`]*`", re.DOTALL | re.MULTILINE),
    ".ts": re.compile(r"\$\{[^}]*\}"),
}
QUOTED = re.compile(r"`+[^`]*`+")


def python_prose(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each comment and each string of a Python file, without the expressions of f-strings."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], QUOTED.sub("", token.string)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if node.value in PROMPTS else QUOTED.sub("", node.value)
            yield from ((node.lineno + at, line) for at, line in enumerate(text.split("\n")))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the prose of a file, without its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from python_prose(text)
        return
    if path.suffix in CODE:
        text = CODE[path.suffix].sub(lambda code: "\n" * code[0].count("\n"), text)
    for found in PROSE[path.suffix].finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield from ((line + at, piece) for at, piece in enumerate(found[0].split("\n")))


def files() -> list[Path]:
    """Return all files with prose: of the package, of the benchmarks, of the plug-ins, and the pages."""
    patterns = (
        "dg_lsp/**/*.py",
        "dg_lsp/**/*.md",
        "benchmarks/**/*.py",
        "editors/nvim/**/*.lua",
        "editors/nvim/doc/*.txt",
        "editors/vscode/*.md",
        "editors/vscode/package.json",
        "editors/vscode/src/*.ts",
        "editors/vscode/walkthrough/*.md",
        "docs/**/*.md",
        "*.md",
    )
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """(name, docstring) of a Python file, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "name", path.name), ast.get_docstring(node) or ""


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_is_plain(path: Path) -> None:
    wrong = [
        f"line {line}: '{found[0]}', write: {instead}"
        for line, text in prose(path)
        for turn, instead in BANNED.items()
        if (found := turn.search(text))
    ]
    assert not wrong


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    paths = sorted([*ROOT.glob("dg_lsp/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
    wrong = [
        f"{path.name}, {name}: {said.splitlines()[0]}"
        for path in paths
        for name, said in docstrings(path)
        if BEGINNINGS.match(said)
    ]
    assert len(paths) > 50 and not wrong


@pytest.mark.parametrize(
    "text", ["mend: fetch it", "it stands there", "keys are told", "what is typed", "goes round"]
)
def test_a_word_of_the_list_is_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Good.\n\n```\n{text}\n```\n{text}\n")
    found = [line for line, said in prose(page) for turn in BANNED if turn.search(said)]
    assert set(found) == {6}
