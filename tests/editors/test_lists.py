"""The plug-ins repeat the server's lists without a difference."""

import json
import re
import struct
import tomllib
from pathlib import Path
from typing import get_args

from dg_lsp.messages import WANTED, State
from dg_lsp.server.status import IDLE
from dg_lsp.settings import EFFORTS
from tests.editors.manifest import MANIFEST, languages

NVIM = MANIFEST.parents[1] / "nvim/lua/dg_lsp"
VSCODE = MANIFEST.parent / "src"


def listed(path: Path, opening: str) -> list[str]:
    """The strings between `opening` and the next closing bracket, brace or semicolon of a file."""
    text = path.read_text(encoding="utf-8")
    assert opening in text, f"{path.name} no longer has {opening}"
    return re.findall(r'"(\w+)"', re.split(r"[}\];]", text.partition(opening)[2])[0])


def test_neovim_asks_for_each_kind_of_gap() -> None:
    assert sorted(listed(NVIM / "fill.lua", "M.kinds = {")) == sorted(WANTED)


def test_neovim_serves_each_language() -> None:
    # Vim calls C# "cs"; server.lua gives the server its own name of it.
    assert '"cs" and "csharp"' in (NVIM / "server.lua").read_text(encoding="utf-8")
    ours = ["csharp" if name == "cs" else name for name in listed(NVIM / "options.lua", "M.filetypes = {")]
    assert sorted(ours) == languages()


def test_vs_code_serves_each_language() -> None:
    # languages.ts takes them from the manifest, which test_manifest.py compares with the grammars.
    assert "activationEvents.map" in (VSCODE / "languages.ts").read_text(encoding="utf-8")


def test_vs_code_says_that_no_engine_is_running_as_the_server_does() -> None:
    assert f'const IDLE = "{IDLE}";' in (VSCODE / "status.ts").read_text(encoding="utf-8")


def test_the_pages_name_each_language() -> None:
    manual = (NVIM.parents[1] / "doc/dg_lsp.txt").read_text(encoding="utf-8")
    named = manual.partition("The filetypes: ")[2].partition(".")[0].split()
    assert sorted("csharp" if name == "cs" else name for name in named) == languages()
    page = (MANIFEST.parents[2] / "docs/editors/others.md").read_text(encoding="utf-8")
    sentence = page.partition("for the language ids ")[2].partition(". ")[0]
    assert sorted(re.findall(r"`(\w+)`", sentence)) == languages()


def test_both_offer_each_effort() -> None:
    assert listed(VSCODE / "menu.ts", "const EFFORTS = [") == list(EFFORTS)
    assert listed(NVIM / "command.lua", 'values = { "low"') == list(EFFORTS[1:])


def test_vs_code_knows_each_state_of_an_engine() -> None:
    assert set(get_args(State)) < set(listed(VSCODE / "protocol.ts", "export type State ="))
    cases = (VSCODE / "status.ts").read_text(encoding="utf-8")
    assert {state for state in get_args(State) if f'"{state}"' in cases} == set(get_args(State))


def test_a_release_has_one_version_and_what_a_shop_of_extensions_shows() -> None:
    root, extension = MANIFEST.parents[2], MANIFEST.parent
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (newest, *_) = re.findall(
        r"^## (.+)$", (extension / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert manifest["version"] == newest == version
    icon = (extension / manifest["icon"]).read_bytes()
    assert icon.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">II", icon[16:24]) == (256, 256)
    packed = (extension / ".vscodeignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{manifest['icon']}", "!CHANGELOG.md", "!README.md"} <= {*packed}
    entry = (root / ".ci/mason.yaml").read_text(encoding="utf-8")
    assert f"name: {manifest['name']}\n" in entry and manifest["license"] in entry and "@VERSION" in entry
