"""Settings: which values are taken, and what is said of the others."""

import subprocess
import sys
from dataclasses import fields

import pytest

from dg_lsp.settings import RANGES, Settings, SettingsError, override, unknown_variables

NUMBERS = [f.name for f in fields(Settings) if type(getattr(Settings(), f.name)) in (int, float)]


@pytest.mark.parametrize("name", NUMBERS)
def test_each_number_has_a_range_that_an_error_names_with_its_reason(name: str) -> None:
    least, most, why = RANGES[name]
    assert least <= getattr(Settings(), name) <= most < 10**16
    kind = type(getattr(Settings(), name))
    for good in (least, most):
        assert getattr(override(Settings(), {name: kind(good)}), name) == good
    for bad in (least - 1, most + 1, 10**30, "nan"):
        with pytest.raises(SettingsError, match=f"'{name}'"):
            override(Settings(), {name: bad})
    with pytest.raises(SettingsError, match=why):
        override(Settings(), {name: kind(most + 1)})


@pytest.mark.parametrize("name", ["disabled_languages", "ghost_languages"])
def test_a_list_of_languages_is_bounded(name: str) -> None:
    for bad in (["python"] * 1_000, ["p" * 10_000]):
        with pytest.raises(SettingsError, match=name):
            override(Settings(), {name: bad})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("DG_LSP_EFORT", "did you mean DG_LSP_EFFORT?"),
        ("DG_LSP_CHECKPOINTS", "did you mean DG_LSP_CHECKPOINT?"),
        ("DG_LSP_ENGINEURL", "did you mean DG_LSP_ENGINE_URL?"),
        ("dg_lsp_seed", "did you mean DG_LSP_SEED?"),
        ("DG_LSP_RUNTIMEDIR", "did you mean DG_LSP_RUNTIME_DIR?"),
        ("DG_LSP_COLOUR_OF_THE_SKY", "no setting has such a name"),
    ],
)
def test_a_variable_that_is_no_setting_is_named_with_the_nearest_that_is(name: str, advice: str) -> None:
    (sentence,) = unknown_variables({name: "secret value", "PATH": "/bin", "DG_LSP_EFFORT": "low"})
    assert sentence == f"the environment variable {name} has no effect; {advice}"


def test_no_variable_that_has_an_effect_is_said_to_have_none() -> None:
    known = {f"DG_LSP_{f.name.upper()}": "" for f in fields(Settings)}
    assert unknown_variables({**known, "DG_LSP_RUNTIME_DIR": "/tmp", "HOME": "/"}) == []


NO_FILES = """
import os, sys
from dg_lsp.settings import Settings, from_environment, override
touched = []
looks = ("open", "os.listdir", "os.scandir")
sys.addaudithook(lambda event, given: touched.append((event, given)) if event in looks else None)
os.stat = os.lstat = lambda *given, **_: touched.append(given)
for values in ({}, {"checkpoint": "auto"}, {"checkpoint": "some/folder", "exclude": ["*.x"], "engineUrl": ""}):
    override(from_environment({}), values)
assert not touched, touched
"""


def test_settings_read_no_file() -> None:
    subprocess.run([sys.executable, "-c", NO_FILES], check=True)
