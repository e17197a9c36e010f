"""What the pages say is what the code says."""

from dg_lsp.settings import Settings, from_environment, override
from tests.configuration import PAGE, camel, page


def test_the_page_of_the_settings_is_the_one_that_the_settings_give():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m tests.configuration"


def test_each_name_on_the_page_sets_its_setting():
    for name in Settings.__dataclass_fields__:
        value = {"effort": "low", "log_level": "debug", "automatic": False}.get(name, 7)
        if isinstance(getattr(Settings(), name), str) and value == 7:
            value = "cpu"
        if isinstance(getattr(Settings(), name), tuple):
            value = ("go",)
        written = ",".join(value) if isinstance(value, tuple) else str(value)
        by_editor = override(Settings(), {camel(name): value})
        assert getattr(by_editor, name) == value != getattr(Settings(), name)
        assert from_environment({f"DG_LSP_{name.upper()}": written}) == by_editor
