"""Files are written by files/writing.py: a walk over the calls of every module."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layers import MODULES

# Modules that write in another way, each with the calls and the reason.
APART = {
    "dg_lsp.files.writing": ({"open", "link"}, "it is the place"),
    "dg_lsp.checkpoints": ({"write_text"}, "a word in our own folder, which counts as none if it is cut"),
    "dg_lsp.cli.main": ({"open"}, "the null device in the place of a closed stdout"),
    "dg_lsp.cli.pack": (
        {"write_text", "copyfile", "mkdtemp"},
        "a folder that is moved as a whole",
    ),
    "dg_lsp.cli.plugins": (
        {"copyfile", "copy", "TemporaryDirectory"},
        "copies of our own files, each in a record with its hash",
    ),
    "dg_lsp.bench.humaneval": (
        {"write_text", "TemporaryDirectory", "TemporaryFile"},
        "the folder of a run",
    ),
    "dg_lsp.engine.fatal": ({"open"}, "hashes of texts, which count as none if they are cut"),
    "dg_lsp.engine.resident": ({"open"}, "a log"),
    "dg_lsp.engine.runtime": ({"open"}, "a lock, in which nothing is written"),
    "dg_lsp.model.networks.mapped": ({"open", "fdopen"}, "handed to make_whole"),
    "dg_lsp.model.networks.packing": ({"save_file"}, "a folder that pack moves as a whole"),
    "dg_lsp.serving.process": ({"write_text"}, "a file of the system"),
    "dg_lsp.serving.tokens": ({"open"}, "a line is added, and one that is cut counts as none"),
    "dg_lsp.training.coder": ({"write_text"}, "a folder that is moved as a whole"),
    "dg_lsp.training.export": (
        {"write_text", "copyfile", "TemporaryDirectory"},
        "a folder that is complete before its files are moved",
    ),
    "dg_lsp.training.loop": ({"open"}, "a log"),
    "dg_lsp.training.packages": (
        {"open", "write_text", "copyfile", "copyfileobj", "TemporaryDirectory"},
        "the folder of a fetch, whose parts are compared with their hashes",
    ),
    "dg_lsp.training.corpus": ({"savez"}, "handed to make_whole"),
    "dg_lsp.training.trainer": ({"copyfile", "save_file"}, "handed to make_whole"),
    "dg_lsp.bench.adapted": ({"copyfile"}, "handed to make_whole"),
    "dg_lsp.cli.trial": (
        {"TemporaryFile", "TemporaryDirectory"},
        "the output of a command, without a name, and a new folder for its reports",
    ),
}
WRITING = {"write_text", "write_bytes", "save_file", "savez", "link_to", "hardlink_to", "symlink_to"}
WRITING |= {"copyfile", "copyfileobj", "copy", "copy2", "copytree", "move", "link", "symlink", "truncate"}
WRITING |= {"mkstemp", "mkdtemp", "TemporaryFile", "NamedTemporaryFile", "TemporaryDirectory"}
# Names that other objects have, too: files are meant where the call is a module's function.
_MODE = r"\(.*'[rbt]*[wax+][rbt+]*'"
OF_MODULES = {"copy", "move", "link", "truncate"}


def writing(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the calls that may write a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of_module = isinstance(owner, ast.Name) and owner.id in ("os", "shutil")
        words = ast.unparse(node)
        opens = name == "open" and re.search(r"O_(WRONLY|RDWR|CREAT|APPEND)" if of_module else _MODE, words)
        if opens or (name in WRITING and (name not in OF_MODULES or of_module)):
            yield name


@pytest.mark.parametrize("module", MODULES)
def test_a_module_writes_files_by_the_functions_for_it(module: str) -> None:
    found = {*writing(ast.parse(MODULES[module].read_text(encoding="utf-8")))}
    allowed, _ = APART.get(module, (set(), ""))
    assert found <= allowed, f"{module}: write_whole and make_whole of files/writing.py do this safely"


def test_every_exception_is_a_module() -> None:
    assert not {*APART} - {*MODULES}


def test_the_walk_sees_a_call(tmp_path: Path) -> None:
    for code in (
        "p.write_text('')",
        "open(p, 'w')",
        "p.open('ab')",
        "os.open(p, os.O_WRONLY)",
        "shutil.move(a, b)",
    ):
        assert [*writing(ast.parse(code))], code
    for code in (
        "p.open()",
        "open(p)",
        "p.open('rb')",
        "os.open(p, os.O_RDONLY)",
        "text.copy()",
        "text.replace('a', 'b')",
    ):
        assert not [*writing(ast.parse(code))], code
