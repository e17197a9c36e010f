"""The layers are strict, and files stay small: a walk over the imports of every module."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dg_lsp

ROOT = Path(dg_lsp.__file__).parent
LAYERS = ("settings", "text", "engine", "host", "server", "cli")
THIRD_PARTY = {
    "settings": set(),
    "text": {"tree_sitter"},
    "engine": {
        "torch", "transformers", "accelerate", "tokenizers", "safetensors", "numpy", "peft", "huggingface_hub",
    },
    "host": {"httpx2", "starlette", "uvicorn", "filelock", "ray"},
    "server": {"pygls", "lsprotocol"},
}  # fmt: skip
# The modules of host that run inside the engine's own process may use the engine, but only once it starts.
INSIDE_THE_ENGINE = {"local.py", "room.py"}
MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(module: Path) -> str:
    return "settings" if module.name == "__init__.py" else _layer(module.relative_to(ROOT).parts[0])


def _layer(name: str) -> str:
    """What lies beside the layers belongs to the command line: each subcommand has modules of its own."""
    first = name.removesuffix(".py")
    return first if first in LAYERS else "cli"


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the layer"
            yield f"{node.module}" if node.module != "dg_lsp" else f"dg_lsp.{node.names[0].name}"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_a_module_imports_only_what_its_layer_may(module: Path) -> None:
    layer = layer_of(module)
    below = LAYERS[: LAYERS.index(layer) + 1]
    inside = layer == "host" and module.name in INSIDE_THE_ENGINE
    for name in imports(ast.parse(module.read_text(encoding="utf-8"))):
        package, *rest = name.split(".")
        if package == "dg_lsp" and rest and rest[0] != "__version__":
            wanted = _layer(rest[0])
            assert wanted in below, f"{layer} must not import {name}"
            assert layer != "host" or wanted != "engine" or inside, f"{module.name} runs outside the engine"
            assert layer != "server" or wanted != "engine", "the server never sees the engine"
        elif package not in sys.stdlib_module_names and package != "dg_lsp" and layer != "cli":
            allowed = THIRD_PARTY[layer] | (THIRD_PARTY["engine"] if inside else set())
            assert package in allowed, f"{layer} must not import {package}"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_a_file_is_at_most_250_lines(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.parametrize(
    "name",
    [
        "dg_lsp.cli",
        "dg_lsp.host.base",
        "dg_lsp.host.local",
        "dg_lsp.host.process",
        "dg_lsp.host.resident",
        "dg_lsp.server.app",
        "dg_lsp.text.gaps",
    ],
)
def test_importing_does_not_load_torch(name: str) -> None:
    code = f"import sys, {name}; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
