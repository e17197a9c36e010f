"""The tracer that counts the modules of a request."""

from benchmarks.walk import walk
from dg_lsp.text.documents.document import Document

# The aim is 12. What stands here only keeps the way from growing longer; make it less when it gets shorter.
MOST = 32
SOURCE = b"def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return \n"


def test_a_walk_has_the_modules_of_each_stage_and_not_more_than_may_be():
    stages = walk(Document("total.py", "python", 0, SOURCE), len(SOURCE) - 1, "result")
    assert [stage.modules[0] for stage in stages] == [
        "dg_lsp.text.gaps.find",
        "dg_lsp.text.prompts.prompt",
        "dg_lsp.text.fills.fit",
    ]
    assert all(stage.crossings >= len(stage.modules) for stage in stages)
    assert len({module for stage in stages for module in stage.modules}) <= MOST
