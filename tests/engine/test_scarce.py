"""An engine that could get no memory for a moment is not slow for the rest of its life."""

import json
import subprocess
import sys

import pytest

from dg_lsp.model.networks import packed

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a process")

# Prints the processor times of fills with all the memory of the machine, and, each of another length, of fills after a
# moment without any more of it, up to the first that fails.
_SCRIPT = """
import asyncio, json, resource, sys, time
from dg_lsp.model.networks import packed
from dg_lsp.filling.engine import EngineError
from dg_lsp.engine.local import LocalEngine
from dg_lsp.settings import Settings
from dg_lsp.messages import Infill

packed.MOST = int(sys.argv[1])
engine = LocalEngine.open(Settings(checkpoint="embedded", device="cpu", threads=1))
HARD = resource.getrlimit(resource.RLIMIT_AS)[1]

async def took(lines):
    above = "".join(f"    v{n} = a + {n}\\n" for n in range(lines))
    request = Infill(f"def f(a):\\n{above}    x = ", "\\n    return x\\n", "python", "rest_of_line", session=str(lines))
    began = time.process_time()
    async for _ in engine.infill(request):
        pass
    return time.process_time() - began

async def main():
    before = [await took(lines) for lines in range(40, 44)]
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), HARD))
    after, error = [], ""
    try:
        after.append(await took(60))
        resource.setrlimit(resource.RLIMIT_AS, (HARD, HARD))
        after += [await took(lines) for lines in range(61, 64)]
    except EngineError as failed:
        error = type(failed).__name__
    print(json.dumps([before, after, error]))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("most", [packed.MOST, 0], ids=["packed", "plain"])
def test_an_engine_that_got_no_memory_for_a_moment_ends_or_is_as_fast_as_before(most: int) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", _SCRIPT, str(most)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    before, after, error = json.loads(done.stdout)
    # The first fill compiles what it needs.
    assert error == "EngineBroken" or min(after[1:]) < 4 * max(before[1:])


# As oneDNN warns where a machine goes on by a slow way; whether it does depends on the processor.
_WARNS = """
import asyncio, sys, warnings
import torch
from dg_lsp.model.networks import packed
from dg_lsp.filling.engine import EngineBroken
from dg_lsp.engine.local import LocalEngine
from dg_lsp.settings import Settings
from dg_lsp.messages import Infill

packed.MOST = 0
engine = LocalEngine.open(Settings(checkpoint="embedded", device="cpu", threads=1))
plain = torch.nn.Linear.forward

def slow(self, input):
    warnings.warn("mkldnn_matmul failed, switching to BLAS gemm:could not create a primitive")
    return plain(self, input)

torch.nn.Linear.forward = slow

async def main():
    async for _ in engine.infill(Infill("def f(a):\\n    x = ", "\\n    return x\\n", "python", "rest_of_line")):
        pass

try:
    asyncio.run(main())
except EngineBroken:
    sys.exit(0)
sys.exit("the engine went on by a slow way")
"""


@pytest.mark.slow
def test_an_engine_whose_libraries_go_on_by_a_slow_way_ends() -> None:
    command = [sys.executable, "-P", "-c", _WARNS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
