"""Files that would end the process whose parser reads them: the server and the engine live, and fill them."""

import pytest

from tests.processes import engines, own_runtime
from tests.robustness.window import Window

DEEP = "- " * 254 + "a\n"
URI = "file:///w/a.yaml"
# The language and the text, whose end is the cursor.
TEXTS = {
    "dashes above the cursor": ("yaml", DEEP + "b: "),
    "far above the cursor": ("yaml", DEEP + "c: 1\n" * 8_000 + "b: "),
    "more lines than are counted": ("yaml", "c: 1\n" * 33_000 + "b: "),
    "keys on lines": ("yaml", "".join(" " * n + "k:\n" for n in range(300)) + "b: "),
    "a fence in a Markdown file": ("markdown", f"# A\n\n```yaml\n{DEEP}b: "),
    "names of heredocs": ("ruby", '"#{' * 203 + "<<HTML" + '}"' * 203 + "\nb = "),
    "blocks": ("python", "".join(" " * n + "if x:\n" for n in range(512)) + " " * 512 + 'y = "a"\n\nb = '),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_deep_file_is_filled_and_nothing_dies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    language, text = TEXTS[name]
    with own_runtime() as runtime:
        window = Window(initializationOptions={"ghostLanguages": ["*"]})
        window.open(URI, text, language)
        for kind in (1, 2, 1):
            answer = window.wait(
                window.ask("textDocument/inlineCompletion", window.inline(URI, len(text), kind))
            )
            assert "result" in answer
        assert answer["result"]["items"]
        (process,) = engines(runtime)
        window.wait(window.ask("textDocument/inlineCompletion", window.inline(URI, len(text), 1)))
        assert engines(runtime) == [process]
        assert window.close() == 0
