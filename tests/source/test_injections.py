"""Code in files of other languages: where it is, what it is called, and that no fill ends it."""

import re
import time
from contextlib import suppress

import pytest

from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.gaps.find import find_gap
from dg_lsp.guard.check import faults_of_edit
from dg_lsp.guard.harm import harm_of
from dg_lsp.reasons import NoGap
from dg_lsp.source.document import Document
from dg_lsp.source.injections import codes_of, injected
from dg_lsp.source.language import containers, injections_of, language_of, load_language

FENCES = "# Use\r\n\n```py\nx = [\n```\n\n  ~~~ sh\n  echo a\n\n```\nb\n"
VUE = """<!-- <script>no</script> -->
<template>
  <p v-if="a">{{ a }}</p>
  <script-like />
</template>

<script setup lang="ts" generics="T extends Record<string, T>">
const a: number = 1
function f() {
}
</script>

<style scoped>
.a { color: red }
</style>

<style lang="scss">
.b { .c { color: red } }
</style>

<i18n>
{"a": 1}
</i18n>
"""
SVELTE = """<script context="module" lang=ts>
  let a: number = 1;
  </SCRIPT >
{#if a < 2}<p>{a}</p>{/if}
<script src="x.js"/>
<style>p { color: red }
p { margin: 0 }</style>
"""
ASTRO = """
---
const a: number = 1;
---
<p>{a}</p>
<script define:vars={{ a }}>
  f(a as number);
</script>
"""
HTML = """<html>
<script type="module">
let a = 1;
</script>
<script type="importmap">
{"imports": {}}
</script>
<script type="application/ld+json">
{"@context": 1}
</script>
<script type='text/x-template'>
<p></p>
</script>
<p>one</p>
<script>let b = 2;</script>
</html>
"""


def opened(text: str, language: str) -> Document:
    return Document(f"file:///w/a.{language}", language, 1, text.encode())


def part(text: str, language: str, at: str) -> tuple[Document, int]:
    """Return the code around the beginning of `at`, whose place in the file must be that in the code."""
    document, offset = opened(text, language), text.encode().index(at.encode())
    found, moved = injected(document, offset)
    assert found.position(moved) == document.position(offset)
    return found, moved


def test_the_code_of_a_fence_keeps_its_lines_and_columns() -> None:
    python, _ = part(FENCES, "markdown", "[")
    assert (python.language, python.text) == ("python", "# # Use\r\n\n# ```py\nx = [\n")
    shell, offset = part(FENCES, "markdown", " a\n")
    assert shell.language == "shell" and shell.data[offset:].startswith(b" a\n\n```\nb\n")


@pytest.mark.parametrize("place", [" Use", "`py", "```\n\n  ", "~~ ", " ~~"])
def test_outside_of_a_fence_nothing_is_filled(place: str) -> None:
    with pytest.raises(NoGap, match="in Markdown files only the code fences are filled"):
        part(FENCES, "markdown", place)
    with pytest.raises(NoGap, match="only the code fences"):
        find_gap(opened(FENCES, "markdown"), 0)
    with pytest.raises(NoGap, match="no language that is known here: klingon"):
        part("```klingon\nx\n```\n", "markdown", "x")


@pytest.mark.parametrize(
    ("text", "language", "at", "found", "last"),
    [
        (VUE, "vue", "const a", "typescript", "}"),
        (VUE, "vue", ".a {", "css", ".a { color: red }"),
        (VUE, "vue", '{"a"', "json", '{"a": 1}'),
        (SVELTE, "svelte", "let a", "typescript", "  let a: number = 1;"),
        (SVELTE, "svelte", "p { margin", "css", "p { margin: 0 }"),
        (ASTRO, "astro", "const a", "typescript", "const a: number = 1;"),
        (ASTRO, "astro", "f(a", "typescript", "  f(a as number);"),
        (HTML, "html", "let a", "javascript", "let a = 1;"),
        (HTML, "html", '{"imports"', "json", '{"imports": {}}'),
        (HTML, "html", '{"@context"', "json", '{"@context": 1}'),
        ("```html\n<script>\nlet a\n</script>\n```\n", "markdown", "let a", "javascript", "let a"),
        ("```vue\n<style>\np {}\n</style>\n```\n", "markdown", "p {}", "css", "p {}"),
        ("<script>\nlet a", "html", "let a", "javascript", "let a"),
    ],
)
def test_code_between_tags_is_read_in_the_language_that_they_name(
    text: str, language: str, at: str, found: str, last: str
) -> None:
    code, _ = part(text, language, at)
    assert (code.language, code.text.splitlines()[-1]) == (found, last)


@pytest.mark.parametrize(
    ("text", "language", "at"),
    [
        (VUE, "vue", "<p v-if"),
        (VUE, "vue", "no<"),
        (HTML, "html", "<p>one"),
        (HTML, "html", "let b"),
        (SVELTE, "svelte", "{#if"),
        (VUE, "vue", "</script>\n\n<style scoped"),
        (HTML, "html", "</script>\n<p>one"),
        ("<script>\n</script>\n", "html", "</script>"),
    ],
)
def test_the_rest_of_a_file_is_markup_with_all_of_its_text(text: str, language: str, at: str) -> None:
    code, _ = part(text, language, at)
    assert (code.language, code.text, code.ends) == ("html" if language == "vue" else language, text, ())


@pytest.mark.parametrize(
    ("text", "language", "at", "why"),
    [
        (VUE, "vue", ".b {", "no language that is known here: scss"),
        (HTML, "html", "<p></p>", "no language that is known here: x-template"),
        (ASTRO, "astro", "<p>", "in Astro files only the front matter, scripts and styles are filled"),
        ('<template lang="pug">\np a\n</template>\n', "vue", "p a", "no language that is known here: pug"),
        ("```markdown\n# a\n```\n", "markdown", "# a", "in Markdown files only the code fences"),
    ],
)
def test_elsewhere_the_reason_is_said(text: str, language: str, at: str, why: str) -> None:
    with pytest.raises(NoGap, match=re.escape(why)):
        part(text, language, at)


@pytest.mark.parametrize("name", containers())
def test_a_container_is_known_by_its_suffix_and_has_its_words(name: str) -> None:
    facts = injections_of(name)
    assert language_of(f"a.{name if name != 'markdown' else 'md'}") == name
    assert facts is not None and facts.title and facts.filled


def test_nothing_is_compiled_to_find_code_on_the_event_loop() -> None:
    before = load_language.cache_info()
    assert part(VUE, "vue", "const a")[0].language == "typescript"
    assert part("```TypeScriptReact\nx\n```\n", "markdown", "x")[0].language == "tsx"
    assert load_language.cache_info() == before


def test_all_code_of_a_file_is_found() -> None:
    assert [code.language for code in codes_of(opened(VUE, "vue"))] == ["typescript", "css", "json"]
    assert [code.language for code in codes_of(opened(FENCES, "markdown"))] == ["python", "shell"]
    assert [*codes_of(opened("x = 1\n", "python"))] == []


@pytest.mark.parametrize(
    ("text", "language", "fill", "refused"),
    [
        ("<script>\nlet a = |\n</script>\n", "html", '"</script>"', True),
        ("<script>\nlet a = |\n</script>\n", "vue", "`</SCRIPT\n>`", True),
        ("<script>\nlet a = |\n</script>\n", "svelte", '"<script>"', False),
        ("<script>\nlet a = |/script>';\n</script>\n", "html", "'<", True),
        ("<style>\na { |\n</style>\n", "html", 'content: "</style>" }', True),
        ("---\nlet a = |\n---\n", "astro", "`\n---\n`", True),
        ("---\nlet a = |\n---\n", "astro", "b---c", False),
        ("```py\na = |\n```\n", "markdown", '"""\n```\n"""', True),
        ("````py\na = |\n````\n", "markdown", '"""\n```\n"""', False),
        ("```py\na = |\n```\n", "markdown", '"```"', False),
        ("```py\na = |\n```\n", "markdown", '"""\n``` py\n"""', False),
        ("```html\n<script>\nlet a = |\n</script>\n```\n", "markdown", "`\n```\n`", True),
    ],
)
def test_no_fill_ends_the_code_around_it(text: str, language: str, fill: str, refused: bool) -> None:
    before, _, after = text.partition("|")
    code, offset = injected(opened(before + after, language), len(before))
    gap = find_gap(code, offset)
    edit = Edit(offset, gap.end, fill)
    whole = apply_edit(code, edit)
    assert whole.data.startswith(code.data[:offset] + fill.encode())
    found = [fault.message for fault in faults_of_edit(code, gap, edit)]
    assert ("what ends the code in this file" in " ".join(found)) is refused


@pytest.mark.parametrize(
    ("fill", "offered"),
    [("$: b = 2 * a;", True), ("$: {\n    b = 2 * a;\n  }", True), ("c: b = 2 * a;", False)],
)
def test_a_statement_that_svelte_runs_again_is_offered(fill: str, offered: bool) -> None:
    before = "<script>\n  let a = 1;\n  let b;\n  "
    code, offset = injected(opened(before + "\n</script>\n", "svelte"), len(before))
    gap = find_gap(code, offset)
    assert (harm_of(code, gap, Edit(gap.start, gap.end, fill)) == "") is offered


@pytest.mark.parametrize(
    "text",
    [
        "<script a='" * 40_000,
        "<script " * 60_000,
        "<script>" * 60_000,
        "<!--" * 120_000,
        "<script {" * 50_000,
        "```" * 160_000,
        "```\n" * 120_000,
        "---\n" * 120_000,
        "````html\n" * 50_000,
    ],
)
@pytest.mark.parametrize("language", ["html", "vue", "astro", "markdown"])
def test_strange_text_takes_no_time(text: str, language: str) -> None:
    began = time.process_time()
    with suppress(NoGap):
        injected(opened(text, language), len(text) // 2)
    assert time.process_time() - began < 2.0
