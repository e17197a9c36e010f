"""What a start imports: transformers without torch's compiler and distributed tensors."""

import subprocess
import sys

import pytest

LOAD = """
import sys
from dg_lsp.engine.local import LocalEngine
from dg_lsp.settings import Settings

engine = LocalEngine.open(Settings(checkpoint="embedded"), lambda doing: None)
print(*sorted(sys.modules.keys() & {"torch._dynamo", "torch.distributed.tensor"}))
"""
AFTER = """
import torch
from dg_lsp.model.networks.lean import import_transformers

import_transformers()
import_transformers()
assert torch.distributed.is_available()
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item())
"""
BROKEN = """
import sys
from dg_lsp.model.networks import lean

lean._IMPORTED = ("transformers.cache_utils", "transformers.absent")
lean.import_transformers()
assert not [name for name in sys.modules if name.startswith("transformers.cache_utils")]
import transformers.modeling_utils
print("imported")
"""


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        pytest.param(LOAD, "", id="an engine imports no compiler"),
        pytest.param(AFTER, "2.0", id="a program can compile afterwards"),
        pytest.param(BROKEN, "imported", id="a version that needs more is imported as usual"),
    ],
)
def test_transformers_is_imported_without_the_compiler(program: str, printed: str) -> None:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, printed), ran.stderr
