"""Judges: what other programs than dg_lsp say of a file's syntax, where they are installed.

A judge takes files and tells of each whether it accepts it. Compilers that stop at what a name means count only
what they say of syntax.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.gaps.valid import is_python

_SUFFIXES = {
    "typescript": ".ts",
    "tsx": ".tsx",
    "javascript": ".jsx",
    "java": ".java",
    "go": ".go",
    "rust": ".rs",
}
_TYPESCRIPT = """
const ts = require("typescript"), fs = require("fs");
for (const path of process.argv.slice(2)) {
  const file = ts.createSourceFile(path, fs.readFileSync(path, "utf8"), ts.ScriptTarget.Latest, false);
  console.log(file.parseDiagnostics.length ? "refused" : "accepted");
}
"""
_JAVA = """
import com.sun.source.util.JavacTask;
import java.util.List;
import javax.tools.*;

public class Judge {
    public static void main(String[] paths) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
        for (String path : paths) {
            DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
            var task = (JavacTask) compiler.getTask(null, files, said, List.of("-proc:none"), null,
                files.getJavaFileObjects(path));
            task.parse();
            boolean bad = said.getDiagnostics().stream().anyMatch(d -> d.getKind() == Diagnostic.Kind.ERROR);
            System.out.println(bad ? "refused" : "accepted");
        }
    }
}
"""
_SYNTAX = re.compile(
    r"error: (?:expected|stray|missing terminating|unterminated|.*\bbefore\b|.*\bwithout a previous\b|extra|"
    r"a function-definition is not allowed|invalid preprocessing|#end|unbalanced)"
)
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Judge:
    """`accepts` takes the contents of files; `missing` says what to install where there is no judge."""

    name: str
    accepts: Callable[[Sequence[bytes]], list[bool]]
    missing: str = ""


def judge_of(language: str) -> Judge:
    """The outside judge of a language."""
    if language == "python":
        return Judge("ast", lambda files: [is_python(data) for data in files])
    if language in ("typescript", "tsx", "javascript"):
        return _typescript(language)
    if language in _COMPILERS:
        program, judge = _COMPILERS[language]
        return _installed(program, judge, language)
    return Judge("none", lambda _: [], f"no judge is known for {language}")


def _installed(name: str, judge: Callable[[Path, list[str]], list[bool]], language: str) -> Judge:
    """A judge that takes paths in a folder of their own, if its program is installed."""
    if shutil.which(name) is None:
        return Judge(name, lambda _: [], f"{name} is not installed")

    def accepts(files: Sequence[bytes]) -> list[bool]:
        if not files:
            return []
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            paths = []
            for number, data in enumerate(files):
                path = folder / f"case{number}{_SUFFIXES.get(language, '.' + language)}"
                path.write_bytes(data)
                paths.append(str(path))
            return judge(folder, paths)

    return Judge(name, accepts)


def _typescript(language: str) -> Judge:
    """The TypeScript compiler's own parser, found where node or npm would find it."""
    node = shutil.which("node")
    if node is None:
        return Judge("typescript", lambda _: [], "node is not installed")
    npm = shutil.which("npm")
    asked = (
        subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False).stdout if npm else ""
    )
    places = os.pathsep.join(
        [os.environ.get("NODE_PATH", ""), asked.strip(), str(Path("node_modules").resolve())]
    )
    environment = os.environ | {"NODE_PATH": places}
    found = subprocess.run(
        [node, "-e", 'require("typescript")'], env=environment, capture_output=True, check=False
    )
    if found.returncode:
        return Judge(
            "typescript",
            lambda _: [],
            "typescript is not installed; npm install typescript, or set NODE_PATH",
        )

    def judge(folder: Path, paths: list[str]) -> list[bool]:
        return _lines([node, _written(folder, "judge.js", _TYPESCRIPT), *paths], environment)

    return replace(_installed("node", judge, language), name="typescript")


def _javac(folder: Path, paths: list[str]) -> list[bool]:
    return _lines(["java", _written(folder, "Judge.java", _JAVA), *paths])


def _gofmt(_: Path, paths: list[str]) -> list[bool]:
    said = subprocess.run(
        ["gofmt", "-e", "-l", *paths], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    return [f"{path}:" not in said.stderr for path in paths]


def _rustc(_: Path, paths: list[str]) -> list[bool]:
    # Only parsing: what a file means depends on the files round it.
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    command = ["rustc", "--edition=2021", "--crate-type=lib", "-Zparse-crate-root-only"]
    return [
        not subprocess.run(
            [*command, path], capture_output=True, env=environment, check=False, timeout=_SECONDS
        ).returncode
        for path in paths
    ]


def _gcc(_: Path, paths: list[str]) -> list[bool]:
    return [_compiles("gcc", path) for path in paths]


def _gxx(_: Path, paths: list[str]) -> list[bool]:
    return [_compiles("g++", path) for path in paths]


def _compiles(program: str, path: str) -> bool:
    # Headers that a file includes are found where CPATH says.
    command = [program, "-fsyntax-only", "-w", "-fmax-errors=0", path]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    return "fatal error" not in said.stderr and _SYNTAX.search(said.stderr) is None


def _written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def _lines(command: list[str], environment: dict[str, str] | None = None) -> list[bool]:
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, timeout=_SECONDS
    )
    return [line == "accepted" for line in said.stdout.splitlines()]


_COMPILERS = {
    "java": ("javac", _javac),
    "go": ("gofmt", _gofmt),
    "rust": ("rustc", _rustc),
    "c": ("gcc", _gcc),
    "cpp": ("g++", _gxx),
}
