"""What the tests of the subcommands share: a scripted engine in the place of the local one."""

from dataclasses import dataclass, field

import pytest

from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.messages import Draft, Fill, Infill, Run
from dg_lsp.settings import Settings

DRAFTS = (
    Draft(0, (), 1.0),
    Draft(1, (Run("return zzz", anchored=False, accepted=False, entropy=2.5),), 20.0),
    Draft(2, (Run("return a + b", anchored=False, accepted=True, entropy=0.1),), 40.0),
)


@dataclass
class Installed:
    """The engine that `install` put in place, and the settings with which it was opened."""

    engine: ScriptedEngine
    settings: list[Settings] = field(default_factory=list)

    @property
    def requests(self) -> list[Infill]:
        return self.engine.requests


def install(patch: pytest.MonkeyPatch, answer, drafts=DRAFTS) -> Installed:
    """Let `LocalEngine.open` give an engine that answers with a text, a Fill, or what a function says."""
    fill = (
        Fill(answer, steps=14, searched=22, reason="stable", milliseconds=2310.0)
        if isinstance(answer, str)
        else answer
    )
    installed = Installed(ScriptedEngine(fill, drafts))

    def open_(settings, progress=lambda _: None):
        progress("loading the script")
        installed.settings.append(settings)
        return installed.engine

    patch.setattr(LocalEngine, "open", staticmethod(open_))
    return installed
