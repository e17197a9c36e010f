"""The packages that dg-lsp needs, and whether they are there. What `dg-lsp doctor` knows of them."""

import importlib
import importlib.metadata
import re

# What pyproject.toml asks for: from this version on, and below that one where there is a bound.
NEEDS = (
    ("accelerate", "1.10", ""),
    ("filelock", "3.20", ""),
    ("httpx2", "2.10", ""),
    ("lsprotocol", "2025.0.0", ""),
    ("numpy", "1.26", ""),
    ("pygls", "2.1", "3"),
    ("safetensors", "0.5", ""),
    ("starlette", "1.0", ""),
    ("tokenizers", "0.22", ""),
    ("torch", "2.11", ""),
    ("transformers", "5.17", "6"),
    ("tree-sitter", "0.26.1", "0.27"),
    ("tree-sitter-c", "0.24.2", "0.25"),
    ("tree-sitter-c-sharp", "0.23.5", "0.24"),
    ("tree-sitter-cpp", "0.23.4", "0.24"),
    ("tree-sitter-go", "0.25", "0.26"),
    ("tree-sitter-java", "0.23.5", "0.24"),
    ("tree-sitter-javascript", "0.25", "0.26"),
    ("tree-sitter-python", "0.25", "0.26"),
    ("tree-sitter-rust", "0.24.2", "0.25"),
    ("tree-sitter-typescript", "0.23.2", "0.24"),
    ("uvicorn", "0.40", ""),
)


def package(name: str, least: str, below: str) -> tuple[bool, str]:
    """Whether a package can be imported in a version of its range, and what to say of it."""
    try:
        version = importlib.metadata.version(name)
        importlib.import_module(name.replace("-", "_"))
    except Exception as error:  # a broken shared library raises OSError, an old numpy ValueError, ...
        return False, f"{name} cannot be imported ({_first_line(error)})"
    if _number(least) <= _number(version) and (not below or _number(version) < _number(below)):
        return True, f"{name} {version}"
    return False, f"{name} {version} is not {bounds(least, below)}"


def bounds(least: str, below: str) -> str:
    """The range of versions, as pip writes it."""
    return f">={least},<{below}" if below else f">={least}"


def _first_line(error: Exception) -> str:
    told = str(error).strip().splitlines()
    return told[0] if told else type(error).__name__


def _number(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `2.13.0+cpu` is (2, 13, 0)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
