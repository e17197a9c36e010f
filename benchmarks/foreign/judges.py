"""Judges: what a compiler or another parser says of texts, many of them at a time. None reads a tree of tree-sitter.

`--tools DIR` has what is not on the machine: `node_modules` with typescript@5, postcss, css-tree, scalameta-parsers and
kotlin-compiler; `py` with html5lib and pglast; `swift-parse`, a program that runs `swift-frontend -frontend -parse`.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

_PROGRAMS = Path(__file__).parent / "programs"
# What gcc says of syntax; the rest is about names and types, which a cut text may have declared.
_C_SYNTAX = re.compile(
    r"expected|unterminated|missing terminating|stray|unmatched|without #if|#(?:else|elif|endif)\b|at end of input"
    r"|empty character|not within a|invalid suffix|exponent has no|forbids declaration"
    r"|a function-definition is not allowed|qualified-id in declaration|numeric constant|null character"
)
# What is about names and files, and no matter of syntax.
_NAMES = re.compile(
    r"No such file|CS0101|CS0102|CS0128|CS0136|already been declared|no binding for nonlocal|no visible label"
)
_PLPGSQL_SYNTAX = re.compile(r"syntax error|mismatched|missing|unterminated|unexpected end|incomplete")
_PHP_SYNTAX = re.compile(r"PHP Parse error|not in the 'loop'|Parse error")


@dataclass(frozen=True, slots=True)
class Sample:
    """A text to be judged: the file that it is a version of, and its bytes."""

    path: Path
    data: bytes


Judge = Callable[[Sequence[Sample]], list[list[str]]]


def judges(tools: Path) -> dict[str, Judge]:
    """Return the judges by language; each gives the errors of every sample, none where it accepts it."""
    sys.path.append(str(tools / "py"))
    node = ["node", "--experimental-vm-modules", "--no-warnings", str(_PROGRAMS / "node.cjs")]
    kotlin = [
        "java",
        "-cp",
        str(tools / "node_modules/kotlin-compiler/lib/*"),
        str(_PROGRAMS / "Kotlin.java"),
    ]

    def each(command: list[str], suffix: str, pattern: str) -> Judge:
        return partial(_each, command, suffix, pattern)

    def listed(command: list[str], suffix: str) -> Judge:
        return partial(_listed, tools, command, suffix)

    return {
        "python": _in_process(_python),
        "javascript": listed([*node, "javascript"], ".js"),
        "typescript": listed([*node, "typescript"], ".ts"),
        "tsx": listed([*node, "typescript"], ".tsx"),
        "c": partial(_gcc, "gcc", "c"),
        "cpp": partial(_gcc, "g++", "c++"),
        "csharp": each(["mcs", "--parse", "-warnaserror:658"], ".cs", r"error CS"),
        "java": listed(["java", str(_PROGRAMS / "Javac.java")], ".java"),
        "go": listed(["go", "run", str(_PROGRAMS / "go.go")], ".go"),
        "rust": each(["rustc", "--edition=2021", "-Zparse-crate-root-only"], ".rs", r"^error"),
        "kotlin": listed(kotlin, ".kt"),
        "swift": each([str(tools / "swift-parse")], ".swift", r": error:"),
        "ruby": listed(["ruby", str(_PROGRAMS / "ruby.rb")], ".rb"),
        "php": each(["php", "-n", "-l"], ".php", _PHP_SYNTAX.pattern),
        "lua": each(["luac5.4", "-p"], ".lua", r"luac"),
        "css": listed([*node, "css"], ".css"),
        "html": _in_process(_html),
        "json": _in_process(_json),
        "yaml": _in_process(_yaml),
        "toml": _in_process(_toml),
        "shell": each(["bash", "-n"], ".sh", r"."),
        "scala": listed([*node, "scala"], ".scala"),
        "sql": _in_process(_sql),
    }


def _in_process(parse: Callable[[str], list[str]]) -> Judge:
    def judge(samples: Sequence[Sample]) -> list[list[str]]:
        found = []
        for sample in samples:
            try:
                found.append(parse(sample.data.decode("utf-8")))
            except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
                found.append([f"{type(error).__name__}: {error}"])
        return found

    return judge


def _python(text: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(ast.parse(text), "judged.py", "exec", dont_inherit=True)
    return []


def _json(text: str) -> list[str]:
    json.loads(text)
    return []


def _toml(text: str) -> list[str]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # A key that is there twice is no matter of syntax.
        if not str(error).startswith(("Cannot overwrite", "Cannot declare", "Cannot mutate")):
            return [str(error)]
    return []


def _yaml(text: str) -> list[str]:
    try:
        for _ in yaml.parse(text, Loader=yaml.CSafeLoader):
            pass
    except yaml.YAMLError as error:
        return [" ".join(str(error).split())]
    return []


def _html(text: str) -> list[str]:
    parser = import_module("html5lib").HTMLParser()
    parser.parse(text)
    names = [(code, str(dict(data).get("name", ""))) for _, code, data in parser.errors]
    # A part of a page has no doctype, and what is no page's header is put into its body.
    return [f"{code} {name}".strip() for code, name in names if "doctype" not in code]


def _sql(text: str) -> list[str]:
    pglast = import_module("pglast")
    try:
        pglast.parser.parse_sql_json(text)
    except pglast.parser.ParseError as error:
        return [str(error)]
    try:
        pglast.parser.parse_plpgsql_json(text)
    except pglast.parser.ParseError as error:
        # The bodies of functions are judged by their syntax, not by what their types may be.
        return [str(error)] if _PLPGSQL_SYNTAX.search(str(error)) else []
    return []


def _listed(tools: Path, command: list[str], suffix: str, samples: Sequence[Sample]) -> list[list[str]]:
    """Judge by one process that reads paths and writes a line for each: the path and the errors between tabs."""
    with TemporaryDirectory() as folder:
        paths = _written(Path(folder), suffix, samples)
        environment = {**os.environ, "NODE_PATH": str(tools / "node_modules")}
        said = subprocess.run(
            command,
            input="\n".join([*map(str, paths), ""]),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            check=False,
        )
    lines = [line.split("\t") for line in said.stdout.splitlines()]
    errors = {line[0]: line[1:] for line in lines}
    if missing := [path for path in paths if str(path) not in errors]:
        raise RuntimeError(
            f"{command[0]} has not judged {len(missing)} of {len(paths)} texts: {said.stderr[-2000:]}"
        )
    return [errors[str(path)] for path in paths]


def _each(command: list[str], suffix: str, pattern: str, samples: Sequence[Sample]) -> list[list[str]]:
    """Judge by one process for each sample; lines with `pattern` are errors where the process fails."""
    found = []
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "LC_ALL": "C.UTF-8"}
        for path in _written(Path(folder), suffix, samples):
            said = subprocess.run(
                [*command, str(path)], capture_output=True, env=environment, check=False, cwd=folder
            )
            text = (said.stderr + said.stdout).decode("utf-8", "replace").replace(str(path), "")
            lines = [line.strip() for line in text.splitlines() if re.search(pattern, line)]
            found.append(lines[:5] if said.returncode else [])
    return found


def _gcc(compiler: str, language: str, samples: Sequence[Sample]) -> list[list[str]]:
    """Judge by gcc with the folders of the file's package for includes; only errors of syntax count."""
    found = []
    for sample in samples:
        folders = [
            sample.path.parent,
            *(p / n for p in sample.path.parents[:4] for n in ("include", "src", ".")),
        ]
        options = [
            "-fsyntax-only",
            "-w",
            "-fmax-errors=20",
            "-x",
            language,
            *(f"-I{f}" for f in folders if f.is_dir()),
        ]
        said = subprocess.run([compiler, *options, "-"], input=sample.data, capture_output=True, check=False)
        lines = [x for x in said.stderr.decode("utf-8", "replace").splitlines() if "error:" in x]
        syntax = (x for x in lines if (_C_SYNTAX.search(x) and "incompatible type" not in x) or "fatal" in x)
        found.append(list(islice(syntax, 5)))
    return found


def _written(folder: Path, suffix: str, samples: Sequence[Sample]) -> list[Path]:
    paths = []
    for number, sample in enumerate(samples):
        own = sample.path.suffix if sample.path.suffix in (".mjs", ".cjs") else suffix
        path = folder / f"{number}{own}"
        path.write_bytes(sample.data)
        paths.append(path)
    return paths


def more(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the errors of `after` that `before` has not, apart from where they are."""
    left = Counter(map(_placeless, before))
    new = []
    for error in after:
        if _NAMES.search(error):
            continue
        if left[_placeless(error)]:
            left[_placeless(error)] -= 1
        else:
            new.append(error)
    return new


def _placeless(error: str) -> str:
    return re.sub(r"\d+", "", error)
