"""The request: how much of a file goes along, and that its cut moves rarely and leaves what matters."""

from dataclasses import replace

from dg_lsp.context.prompt import build
from dg_lsp.gaps.find import Gap, find_gap
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

SMALL = Settings(prefix_bytes=200, suffix_bytes=100)
TEXT = "".join(f"value_{n} = {n}\n" for n in range(200))


def document(text: str) -> Document:
    return Document("file:///m.py", "python", 0, text.encode())


def test_a_short_file_is_sent_whole() -> None:
    found = document("\ufeffdef f(): pass\nx = 1\n")
    request = build(found, find_gap(found, 6), replace(SMALL, seed=4, effort="high", deadline=1.5))
    assert (request.prefix, request.suffix) == ("def f():\n    ", "\nx = 1\n")
    assert (request.language, request.kind, request.indent, request.session) == (
        "python", "function_body", "    ", "file:///m.py",
    )  # fmt: skip
    assert (request.seed, request.effort, request.deadline) == (4, "high", 1.5)
    assert build(found, find_gap(found, 6), SMALL).deadline is None


def test_cuts_are_at_line_ends_and_within_the_limits() -> None:
    for text in (TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r"), TEXT.replace("_", "é_")):
        found = document(text)
        for at in range(1500, 1600):
            if found.data[at] & 0xC0 == 0x80:
                continue
            request = build(found, find_gap(found, at, "rest_of_line"), SMALL)
            before, after = found.data[:at].decode(), found.data[at:].decode()
            assert before.endswith(request.prefix) and len(request.prefix.encode()) <= 200
            assert before.removesuffix(request.prefix)[-1] in "\r\n" and request.prefix[0] == "v"
            assert len(request.prefix.encode()) >= 75
            rest = after.removeprefix(request.suffix.rstrip() if at == len(text) else request.suffix)
            assert len(request.suffix.encode()) <= 100 and (rest[0] == "v" or request.suffix == "")


def test_the_cut_moves_once_in_a_quarter_of_a_prefix_of_typing() -> None:
    found = document(TEXT)
    starts = []
    for at in range(1000, 1400):
        request = build(found, find_gap(found, at, "rest_of_line"), SMALL)
        starts.append(at - len(request.prefix))
    assert len(set(starts)) <= 9


def test_what_matters_above_the_cut_comes_first_and_counts_for_the_limit() -> None:
    text = (
        '\ufeffimport os\n\n\nclass A:\n    def f(self):\n        """Say."""\n'
        + "        x = 1\n" * 99
        + "        "
    )
    found = document(text)
    gap = find_gap(found, len(found.data), "rest_of_line")
    for limit in range(300, len(found.data) - 3, 7):
        prefix = build(found, gap, Settings(prefix_bytes=limit)).prefix
        head = "import os\nclass A:\n    def f(self):\n        x = 1\n"
        assert prefix.startswith(head) and prefix.endswith("        x = 1\n        ")
        assert limit / 2 <= len(prefix) <= limit
    assert build(found, gap, Settings(prefix_bytes=len(found.data))).prefix == text[1:]


def test_one_long_line_is_cut_at_a_character() -> None:
    found = document("x = '" + "é" * 500 + "'\n")
    request = build(found, find_gap(found, 605, "rest_of_line"), SMALL)
    assert 0 < len(request.prefix.encode()) <= 200 and 0 < len(request.suffix.encode()) <= 100
    assert (
        build(found, find_gap(found, 605, "rest_of_line"), Settings(prefix_bytes=0, suffix_bytes=0)).prefix
        == ""
    )


def test_the_text_between_several_gaps_is_sent_whole() -> None:
    data = b"def f(x):\r\n    y = x\r\n    ...\r\n    print(y)\r\n    ...\r\n    return y\r\n"
    document = Document("file:///m.py", "python", 1, data)
    request = build(document, find_gap(document, 20, "holes"), Settings(prefix_bytes=0, suffix_bytes=30))
    assert request.kind == "statement"
    assert request.between == ("\r\n    print(y)\r\n    ",)
    assert (request.prefix, request.suffix) == ("", "\r\n    return y\r\n")


def test_a_span_starts_from_its_own_text_half_of_it_noise_and_nothing_else_does() -> None:
    data = b"def f(a):\n    b = a + 1\n    return b\n"
    document = Document("file:///a.py", "python", 1, data)
    request = build(document, Gap(14, 23, "span", "    ", asked=True), Settings())
    assert (request.start, request.noised) == ("b = a + 1", 0.5)
    for gap in (Gap(14, 14, "span", "    ", asked=True), Gap(14, 37, "function_body", "    ", asked=True)):
        request = build(document, gap, Settings())
        assert (request.start, request.noised) == (None, 1.0)
