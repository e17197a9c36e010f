"""The benchmark of foreign parsers: a place that cannot be read costs that place and no language."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.foreign import __main__ as foreign
from benchmarks.guarantee.places import Place
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import Language

TEXT = "a = 'é'\nb = 'c'\n" + "# a line that makes the file long enough\n" * 10


def test_a_place_that_cannot_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def places(language: Language, data: bytes, _: random.Random) -> Iterator[Place]:
        for at, stop in ((data.index("é".encode()) + 1, 8), (data.index(b"'c'"), 16), (0, 3)):
            yield Place(language, data, at, stop, "rest of line", None)

    def filled(place: Place, *rest: object) -> Iterator[foreign.Shown]:
        if place.at == 0:
            raise OutOfTime
        yield from original(place, *rest)  # type: ignore[arg-type]

    original = foreign._filled
    monkeypatch.setattr(foreign, "places", places)
    monkeypatch.setattr(foreign, "_filled", filled)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/a.py").write_text(TEXT, encoding="utf-8")
    counts = foreign.measure("python", lambda samples: [[] for _ in samples], tmp_path, 3, 0).counts
    assert (counts["places"], counts["unread"], counts["exact"], counts["harmful"]) == (3, 2, 1, 14)
