"""Settings of a client on top of those of the command line; a workspace may change only what is safe."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dg_lsp.checkpoints import EMBEDDED, languages_of, named, prompt_of
from dg_lsp.engine.choice import resolve
from dg_lsp.settings import Settings, SettingsError, name_of, of_machine, override, variable_of
from dg_lsp.text.languages.language import is_plain

# Globs that a workspace may add to `exclude`, and characters of one: more would take too long to read and to compare.
_GLOBS, _GLOB = 500, 1_000


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
    if name == "exclude_ignored":
        return replace(settings, exclude_ignored=settings.exclude_ignored or changed.exclude_ignored)
    if name in of_machine() and changed != settings:
        raise SettingsError(
            f"the workspace cannot set {given!r}; set it with --{name.replace('_', '-')}, with "
            f"{variable_of(name)} or in the initialization options"
        )
    return changed


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
