"""The layers are strict: a walk over the imports of every module."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dg_lsp

ROOT = Path(dg_lsp.__file__).parent
MODEL = {
    "torch",
    "transformers",
    "accelerate",
    "tokenizers",
    "safetensors",
    "numpy",
    "huggingface_hub",
    "gguf",
}
TEXT = {"settings", "messages", "reasons", "budget", "files", "source"}
BASE = TEXT | {"checkpoints", "processes", "gaps", "context", "guard", "edits"}
# By layer: what of dg_lsp it may import beside itself, and which other packages.
RULES: dict[str, tuple[set[str], set[str]]] = {
    "settings": (set(), set()),
    "processes": (set(), set()),
    "checkpoints": ({"settings"}, {"platformdirs"}),
    "messages": (set(), set()),
    "reasons": (set(), set()),
    "budget": ({"reasons"}, set()),
    "files": ({"settings", "reasons", "budget"}, set()),
    "source": (TEXT, {"tree_sitter"}),
    "gaps": (TEXT, {"tree_sitter"}),
    "context": (TEXT | {"gaps"}, {"tree_sitter"}),
    "guard": (TEXT | {"gaps"}, {"tree_sitter"}),
    "edits": (TEXT | {"gaps", "context", "guard"}, {"tree_sitter"}),
    "filling": (BASE, set()),
    "model": (BASE, MODEL | {"triton"}),
    "engine": (BASE | {"filling"}, {"anyio", "h11", "httpcore2", "httpx2", "filelock", "psutil"}),
    "serving": (
        BASE | {"filling", "engine"},
        {"filelock", "h11", "starlette", "uvicorn", "prometheus_client", "ray"},
    ),
    "server": (BASE | {"filling", "engine"}, {"pygls", "lsprotocol", "platformdirs", "filelock"}),
    "training": (BASE | {"model"}, MODEL | {"peft", "filelock", "rich"}),
    "bench": (BASE | {"filling", "model", "engine", "serving", "training"}, MODEL),
    "cli": (
        BASE | {"filling", "model", "engine", "serving", "server", "training", "bench"},
        MODEL | {"junitparser", "packaging", "rich"},
    ),
}
# The modules of engine that run inside the engine's own process may use the engine, but only once it starts.
INSIDE_THE_ENGINE = {f"dg_lsp.engine.{name}" for name in ("local", "memory", "vllm", "llama")}


# The one module that starts programs.
STARTER = "dg_lsp.processes"
# Modules of the standard library that start one, run a text as a program, or open what a text names.
STARTING = {
    "subprocess",
    "runpy",
    "multiprocessing",
    "pty",
    "code",
    "webbrowser",
    "concurrent.futures.process",
}
# Names by which one is started, of whatever object: of `os`, of `asyncio`, of an event loop, of a library of C.
STARTS = re.compile(
    r"system|popen|startfile|fork(?:pty)?|v?fork|exec(?:v|l)p?e?|spawn\w*|posix_spawnp?|create_subprocess_\w+|"
    r"subprocess_(?:exec|shell)|ProcessPoolExecutor|get_context"
)
RUNS = {"exec", "eval", "__import__"}


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = [p for p in path.relative_to(ROOT.parent).with_suffix("").parts if p != "__init__"]
        found[".".join(parts)] = path
    return dict(sorted(found.items()))


MODULES = modules()
# What is no part of a layer: the version and the way in.
APART = {"dg_lsp", "dg_lsp.__main__"}


def layer_of(module: str) -> str:
    """The layer of a module; one that no rule names has none."""
    return module.split(".")[1] if "." in module else ""


@cache
def imports(module: str) -> tuple[str, ...]:
    """What a module imports, by full names, wherever in it the import stands, and also where only types name it."""
    return tuple(_imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the layer"
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in MODULES else f"{node.module}"


@pytest.mark.parametrize("module", [m for m in MODULES if m not in APART])
def test_a_module_imports_only_what_its_layer_may(module: str) -> None:
    layer = layer_of(module)
    assert layer in RULES, f"no rule names {module}; give it a layer"
    ours, theirs = RULES[layer]
    if module in INSIDE_THE_ENGINE:
        ours, theirs = ours | {"model"}, theirs | MODEL
    for name in imports(module):
        package = name.split(".")[0]
        if package == "dg_lsp":
            assert name == "dg_lsp" or layer_of(name) in ours | {layer}, f"{module} must not import {name}"
        elif package not in sys.stdlib_module_names:
            assert package in theirs, f"{module} must not import {package}"


def test_no_module_imports_a_private_module_of_another_package() -> None:
    foreign = {
        name: module for module in MODULES for name in imports(module) if not name.startswith("dg_lsp")
    }
    private = {name: module for name, module in foreign.items() if re.search(r"\._[a-z]", name)}
    assert not private


# Packages with a face: others import only what `__all__` names.
FACES = ("gaps", "context", "guard", "edits")


@pytest.mark.parametrize("module", [m for m in MODULES if m not in APART])
def test_a_module_imports_from_a_room_only_what_its_face_names(module: str) -> None:
    for name in imports(module):
        if (room := layer_of(name)) in FACES and room != layer_of(module):
            public = importlib.import_module(f"dg_lsp.{room}").__all__
            assert name.count(".") == 1 or name.split(".")[2] in public, f"{module} must not import {name}"


@pytest.mark.parametrize("room", FACES)
def test_a_face_names_nothing_that_no_other_package_imports(room: str) -> None:
    face = f"dg_lsp.{room}"
    others = [ast.parse(MODULES[m].read_text(encoding="utf-8")) for m in MODULES if layer_of(m) != room]
    used = {
        name.name
        for tree in others
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == face
        for name in node.names
    }
    assert used == {*importlib.import_module(face).__all__}


def test_no_module_imports_itself_by_a_detour() -> None:
    ours = {module: {name for name in imports(module) if name in MODULES} for module in MODULES}
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, "a circle: " + " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for name in ours[module]:
                walk(name, (*path, module))
            done.add(module)

    for module in MODULES:
        walk(module, ())


def importers(module: str) -> list[str]:
    """The modules that import `module`."""
    return [name for name in MODULES if module in imports(name)]


def test_one_module_alone_connects_to_the_hub_and_one_command_alone_calls_it() -> None:
    hub = "dg_lsp.training.hub"
    assert [module for module in MODULES if "huggingface_hub" in "".join(imports(module))] == [hub]
    packages = "dg_lsp.training.packages"
    assert importers(hub) == ["dg_lsp.cli.fetch", packages]
    assert importers(packages) == ["dg_lsp.training.coder", "dg_lsp.training.small"]
    assert importers("dg_lsp.training.coder") == importers("dg_lsp.training.small") == ["dg_lsp.cli.fetch"]


def test_whoever_fills_a_gap_goes_through_filling() -> None:
    asking = {module for module in MODULES if ".infill(" in MODULES[module].read_text("utf-8")}
    assert {layer_of(module) for module in asking} == {"filling", "engine", "serving"}


def starts(text: str) -> set[str]:
    """Names in a module's text by which it could start a program or run a text."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if STARTING & {name.name, name.name.split(".")[0]}}
        elif isinstance(node, ast.ImportFrom):
            names = {name.name for name in node.names if STARTS.fullmatch(name.name)}
            found |= names | ({node.module or ""} & STARTING)
            # `asyncio.subprocess` starts nothing by its types and constants.
            found |= {"subprocess" for name in node.names if name.name == "subprocess"}
        elif isinstance(node, ast.Attribute) and STARTS.fullmatch(node.attr):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & RUNS
            # getattr(os, "system")
            strings = {one.value for one in node.args if isinstance(one, ast.Constant)}
            if node.func.id == "getattr":
                found |= {one for one in strings if isinstance(one, str) and STARTS.fullmatch(one)}
    return found


def test_no_other_module_starts_a_program_or_runs_a_text() -> None:
    found = {module: names for module in MODULES if (names := starts(MODULES[module].read_text("utf-8")))}
    assert found.keys() == {STARTER}, found


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing.pool",
        "from concurrent.futures import ProcessPoolExecutor",
        "import os\nos.system('ls')",
        "from os import execv",
        "from os import posix_spawn as go",
        "import os as system_of\nsystem_of.popen('ls')",
        "import os\nos.spawnlp(0, 'ls')",
        "import asyncio\nasyncio.create_subprocess_exec('ls')",
        "async def go(loop): await loop.subprocess_shell(None, 'ls')",
        "import pty",
        "import webbrowser",
        "import ctypes\nctypes.CDLL(None).system(b'ls')",
        "import os\ngetattr(os, 'system')('ls')",
        "import torch\ntorch.multiprocessing.spawn(print)",
        "exec('import os')",
    ],
)
def test_each_way_to_start_a_program_is_noticed(text: str) -> None:
    assert starts(text)
    assert not starts("import os, asyncio\nos.environ, asyncio.subprocess.PIPE")


@pytest.mark.parametrize(
    "name",
    [
        "dg_lsp.cli.main",
        "dg_lsp.filling.fill",
        "dg_lsp.engine.local",
        "dg_lsp.serving.process",
        "dg_lsp.engine.resident",
        "dg_lsp.server.app",
        "dg_lsp.gaps.find",
    ],
)
def test_importing_does_not_load_torch(name: str) -> None:
    code = f"import sys, {name}; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
