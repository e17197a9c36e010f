"""Text that fills no placeholder: another placeholder, or an import in a function. Knows analyses, gaps and edits."""

from dg_lsp.text.analysis import analyze
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit, Gap, apply_edit
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import BODIES
from dg_lsp.text.syntax.bodies import has_only_placeholder


def useless(document: Document, gap: Gap, edit: Edit) -> str:
    """Return why `edit` writes nothing into the placeholder `gap`, as a sentence; empty if it does or `gap` is none.

    A placeholder such as `...` that is ghost text in an empty body is as good as any other text.
    """
    old = document.data[gap.start : gap.end].strip()
    if not gap.stub or not (old or gap.asked):
        return ""
    if _is_placeholder(document, edit):
        return "the model wrote another placeholder"
    if gap.name and gap.kind not in BODIES and _imports(document.language, edit.text):
        return "the model wrote an import into a function"
    return ""


def _is_placeholder(document: Document, edit: Edit) -> bool:
    """Return whether the text of `edit` says no more than that something is not written yet."""
    analysis = analyze(apply_edit(document, edit), edit.start)
    first, last = analysis.inserted
    if first < last:
        return False
    span = analysis.cursor, analysis.cursor + len(edit.text.encode("utf-8"))
    stubs = [(node.start_byte, node.end_byte) for node in analysis.captures(span).get("stub", [])]
    return has_only_placeholder(analysis.language, analysis.data, span, stubs)


def _imports(name: str, text: str) -> bool:
    """Return whether `text` is an import in the language called `name`."""
    language = load_language(name)
    return bool(language.captures(language.parse(text.encode("utf-8")).root_node).get("import"))
