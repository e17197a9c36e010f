"""The example bot as a program, with the scripted engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "fill_stubs.py"
SHOP = (
    'def price(n):\n    """The price of n."""\n    raise NotImplementedError\n\n\ndef tax(n):\n    return n\n'
)
CART = "class Cart:\n    def total(self):\n        pass\n\n    def count(self):\n        ...\n"

# Two servers and two engines.
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    (tmp_path / "inner").mkdir()
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "inner" / "cart.py").write_bytes(CART.replace("\n", "\r\n").encode())
    return tmp_path


def run(*arguments: str | Path) -> tuple[dict, str, int]:
    """The report, what stands on standard error, and the exit code."""
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
    return json.loads(done.stdout), done.stderr, done.returncode


def test_without_write_the_diff_is_shown_and_no_file_changes(folder: Path) -> None:
    report, told, code = run(folder)
    names = [(Path(entry["path"]).name, entry["name"]) for entry in report["filled"]]
    assert names == [("cart.py", "Cart.count"), ("cart.py", "Cart.total"), ("shop.py", "price")]
    assert report["refused"] == [] and code == 0
    assert "+    return None" in told and "-    raise NotImplementedError" in told
    assert (folder / "shop.py").read_text() == SHOP


def test_with_write_the_stubs_are_filled_and_line_ends_stay(folder: Path) -> None:
    _, _, code = run(folder, "--write", "--seed", "2")
    assert code == 0
    assert (folder / "shop.py").read_text() == SHOP.replace("raise NotImplementedError", "return False")
    filled = CART.replace("pass", "return False").replace("...", "return False")
    assert (folder / "inner" / "cart.py").read_bytes() == filled.replace("\n", "\r\n").encode()
