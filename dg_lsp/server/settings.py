"""Settings of a client on top of those of the command line; a workspace may change only what is safe.

What protects the user comes from two sides, and the stricter one holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dg_lsp.checkpoints import EMBEDDED, languages_of, named, prompt_of
from dg_lsp.engine.choice import resolve
from dg_lsp.settings import (
    AUTO,
    Settings,
    SettingsError,
    is_foreign,
    name_of,
    of_machine,
    override,
    variable_of,
)
from dg_lsp.source.language import is_plain

# Globs that a workspace may add to `exclude`, and characters of one: more would take too long to read and to compare.
_GLOBS, _GLOB = 500, 1_000
# What protects: lists that a workspace adds to, a switch that it can only switch on, switches that it can only switch
# off, and numbers that it cannot raise once the user has lowered them.
_LISTS, _ON = ("exclude", "disabled_languages"), ("exclude_ignored",)
_OFF = ("automatic", "related", "next_edit", "prefetch")
_AMOUNTS = ("prefix_bytes", "suffix_bytes", "definition_bytes")
_PICKED = ("checkpoint", "engine_url")  # what the model menu decides
_PROTECTING = (*_LISTS, *_ON, *_OFF, *_AMOUNTS)


@dataclass(frozen=True, slots=True)
class Reported:
    """The settings that a client has reported: the workspace's, or all, and the user's; None for a part of which
    it says nothing."""

    workspace: Mapping[str, Any] | None
    user: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """All that the settings of a session come from, so that they can be derived again at any time.

    base: those of the command line. own: the initialization options. user: the user's settings as a client reports them
    apart from the workspace's; they replace initialization options of the same names. workspace: all others.
    picked: the checkpoint that was chosen in the model menu, or a server's address; empty if none was. auto: that of
    `base` is the one that AUTO means.
    """

    base: Settings
    own: Mapping[str, Any] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)
    workspace: Mapping[str, Any] = field(default_factory=dict)
    picked: str = ""
    auto: bool = False

    @property
    def is_auto(self) -> bool:
        """Return whether the checkpoint is the one that AUTO means: the user has named and picked none."""
        given = [
            value for name, value in self.own.items() if name_of(name) == "checkpoint" and value is not None
        ]
        return not self.picked and (given[-1] == AUTO if given else self.auto)


def derived(sources: Sources) -> tuple[Settings, list[str]]:
    """Return the settings of `sources`, and a sentence for each setting that is wrong and left out."""
    machine, picked = of_machine(), sources.picked
    # What runs on this machine is said once, before anything runs.
    user = {given: value for given, value in sources.user.items() if name_of(given) not in machine}
    newer = {*map(name_of, user)}
    own = {given: value for given, value in sources.own.items() if name_of(given) not in newer}
    base = sources.base
    if picked:
        base = replace(base, engine_url=picked) if is_foreign(picked) else replace(base, checkpoint=picked)
    own, workspace = (
        {given: value for given, value in one.items() if not (picked and name_of(given) in _PICKED)}
        for one in ({**own, **user}, sources.workspace)
    )
    return configured(base, own, workspace)


def reported(known: Mapping[str, Any], answer: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """Return what `known` settings become by the `answer` of a client, and a sentence for each that is wrong.

    Instead of a wrong value the known one stays, and all do if no name is right. Without an answer, None, what excludes
    files and languages stays: a client that says nothing of it takes nothing back.
    """
    if answer is None:
        return {given: value for given, value in known.items() if name_of(given) in (*_LISTS, *_ON)}, []
    names = {one.name for one in fields(Settings)}
    if answer and names.isdisjoint(map(name_of, answer)):
        return {**known}, [f"the client's settings have no setting of dg-lsp, but {', '.join(answer)[:80]!r}"]
    found, wrong, before = dict[str, Any](), list[str](), {name_of(given): given for given in known}
    for given, value in answer.items():
        try:
            override(Settings(), {given: value})
            found[given] = value
        except SettingsError as error:
            wrong.append(str(error))
            if (old := before.get(name_of(given))) is not None:
                found[old] = known[old]
    return found, wrong


def is_stricter(settings: Settings, than: Settings) -> bool:
    """Return whether something that may be read or sent by the settings `than` may not be by `settings`."""

    def of(name: str) -> tuple[Any, Any]:
        return getattr(settings, name), getattr(than, name)

    return (
        any({*now} - {*then} for now, then in map(of, _LISTS))
        or any(now and not then for now, then in map(of, _ON))
        or any(then and not now for now, then in map(of, _OFF))
        or any(now < then for now, then in map(of, _AMOUNTS))
    )


def configured(
    base: Settings, own: Mapping[str, Any], workspace: Mapping[str, Any]
) -> tuple[Settings, list[str]]:
    """Return `base` with the client's settings, and a sentence for each setting that is wrong and left out.

    own: the client's initialization options. workspace: its configuration, which may come from a file in the
    workspace, and so cannot change what runs on this machine.
    """
    settings, wrong = base, list[str]()
    for given, value in own.items():
        try:
            settings = resolve(override(settings, {given: value}))
        except SettingsError as error:
            wrong.append(str(error))
    user = settings.exclude
    for given, value in workspace.items():
        try:
            settings = _by_workspace(settings, given, value)
        except SettingsError as error:
            wrong.append(str(error))
    settings, more = _bounded(settings, user)
    return settings, wrong + more


def silence(settings: Settings, language: str) -> str:
    """Return why documents of `language` get no automatic ghost text, as a sentence; empty if they do."""
    if not settings.automatic:
        return "automatic ghost text is switched off by the setting automatic"
    return unlearned(settings, language)


def unlearned(settings: Settings, language: str) -> str:
    """Return why fills in `language` would be worthless, as a sentence; empty if the checkpoint has learned it.

    A language of the setting ghost_languages counts as learned.
    """
    # The languages of a team's server are not known here.
    if settings.engine_url or {language, "*"} & {*settings.ghost_languages}:
        return ""
    known = languages_of(settings.checkpoint)
    if language in known or not (known or (is_plain(language) and prompt_of(settings.checkpoint) == "raw")):
        return ""
    name = "embedded checkpoint" if named(settings.checkpoint) == EMBEDDED else "checkpoint"
    learned = " and ".join(map(str.capitalize, known)) or "other languages"
    return f"the {name} was trained on {learned} only; add {language} to the setting ghostLanguages to try it here"


def _by_workspace(settings: Settings, given: str, value: Any) -> Settings:
    """Return `settings` with the option that a workspace calls `given` set to `value`."""
    changed, name = resolve(override(settings, {given: value})), name_of(given)
    if name in of_machine() and changed != settings:
        raise SettingsError(
            f"the workspace cannot set {given!r}; set it with --{name.replace('_', '-')}, with "
            f"{variable_of(name)} or in the initialization options"
        )
    if name not in _PROTECTING:
        return changed
    user, its = getattr(settings, name), getattr(changed, name)
    if (name in _OFF and its and not user) or (
        name in _AMOUNTS and its > user and user < getattr(Settings(), name)
    ):
        raise SettingsError(
            f"the workspace cannot set {given!r} to {value!r}, because your own settings are stricter; change those"
        )
    if name == "disabled_languages":
        return replace(changed, disabled_languages=tuple(dict.fromkeys((*user, *its))))
    # `override` adds globs to those that there are.
    return replace(changed, exclude_ignored=settings.exclude_ignored or changed.exclude_ignored)


def _bounded(settings: Settings, user: Sequence[str]) -> tuple[Settings, list[str]]:
    """Return `settings` without globs of `exclude` that are too many or too long, and a sentence about those.

    user: the globs that do not come from the workspace; they are not counted.
    """
    own = {*user}
    globs = [glob for glob in settings.exclude if glob not in own]
    kept = [glob for glob in globs if len(glob) <= _GLOB][:_GLOBS]
    if len(kept) == len(globs):
        return settings, []
    return replace(settings, exclude=(*user, *kept)), [
        f"the workspace names {len(globs):,} globs in 'exclude', of which only the first {len(kept):,} are used: it "
        f"may name {_GLOBS} of at most {_GLOB:,} characters; name folders instead of files, or exclude them in the "
        "initialization options"
    ]
