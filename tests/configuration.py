"""Writes docs/configuration.md from the settings, so that the page cannot lag behind the code.

    python -m tests.configuration

`tests/test_docs.py` compares the page with what is written here.
"""

from dataclasses import fields
from pathlib import Path

from dg_lsp.cli.options import FILLING, SERVING
from dg_lsp.server.client import SECTION
from dg_lsp.settings import RANGES, Settings

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
_HEAD = f"""\
# Configuration

Written by `python -m tests.configuration` from [dg_lsp/settings.py](../dg_lsp/settings.py); do not edit it.

Every setting has a default, so none needs to be given. A later entry of this list wins:

1. the default,
2. an environment variable of the process, such as `DG_LSP_EFFORT=high`,
3. an option on the command line, such as `--effort high`,
4. for the server: the client's `initializationOptions`, then its settings in the section `{SECTION}`, which count as a workspace's.

A workspace can remove nothing that protects you: it can add to `exclude` and `disabled_languages`, switch `exclude_ignored` on, switch
`automatic`, `related`, `next_edit` and `prefetch` off, and lower `prefix_bytes`, `suffix_bytes` and `definition_bytes` where you have
lowered them; what it tries beyond that is named in a message. So set what protects you on the command line, in the environment, in the
initialization options, or in the user settings of VS Code.

A value that cannot be used is named in a message, and the value below it applies. Editors write names in camel case
(`prefixBytes`); snake case is taken, too. A list is one text with commas in the environment and on the command line
(`DG_LSP_EXCLUDE='*.sql,data/'`), and a list in an editor (`["*.sql", "data/"]`). A variable `DG_LSP_...` that is not a setting has no effect, and a line on stderr,
which is the server's log in an editor, names the nearest setting.

| setting | default | environment variable | editor setting | command line |
|---|---|---|---|---|
"""
_MIDDLE = """
What each of them means:

"""
_TAIL = """
Some things are not settings, because they belong to the machine and not to a window:

- `DG_LSP_RUNTIME_DIR`: the folder in which servers and engines meet, with their sockets, locks and the engine's log.
  Otherwise it is `dg-lsp` in `XDG_RUNTIME_DIR`, or `dg-lsp-UID` in the temporary folder.
- `XDG_CACHE_HOME`: where it is noted which large checkpoint files have been verified and how fast a model is here, and where the
  matrices of a GGUF file are kept as this processor computes with them (1.5 GB for `coder`), so that the engine starts sooner; `~/.cache` by default.
- `HF_HOME`, `HF_HUB_OFFLINE`, `HF_TOKEN` and others are read by the library with which `dg-lsp fetch` gets a checkpoint of the hub.
- `NO_COLOR`, `TERM`, `COLORTERM`: how `dg-lsp trace` and `dg-lsp demo` draw.
- `ONEDNN_PRIMITIVE_CACHE_CAPACITY`, `LRU_CACHE_CAPACITY`: taken as they are if set, otherwise 32 ([memory.md](memory.md)).
- `OMP_WAIT_POLICY`, `GOMP_SPINCOUNT`, `KMP_BLOCKTIME`: how long a thread of the model waits for work before it sleeps;
  taken as they are if set, otherwise some tenths of a millisecond (GNU) or 5 ms (LLVM).
"""


def page() -> str:
    """The text of docs/configuration.md as the settings have it now."""
    rows = "".join(_row(f.name) for f in fields(Settings))
    words = "".join(f"- `{f.name}`: {f.metadata['help']}.{_range(f.name)}\n" for f in fields(Settings))
    return _HEAD + rows + _MIDDLE + words + _TAIL


def camel(name: str) -> str:
    """`prefix_bytes` as editors write it: `prefixBytes`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _row(name: str) -> str:
    option = f"`--{name.replace('_', '-')}`"
    where = f"{option}, all but `train`" if name in FILLING else f"{option}, the server and `engine`"
    told = where if name in SERVING else ""
    return f"| `{name}` | {_shown(getattr(Settings(), name))} | `DG_LSP_{name.upper()}` | `{camel(name)}` | {told} |\n"


def _range(name: str) -> str:
    """The sentence that says which numbers `name` takes; empty where it takes none."""
    if name not in RANGES:
        return ""
    least, most, _ = RANGES[name]
    return f" From {least:,.0f} to {most:,.0f}."


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return " ".join(f"`{one}`" for one in default) or "none"
    return f"`{str(default).removesuffix('.0')}`" if default != "" else "none"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
