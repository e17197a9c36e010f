"""Capabilities: the abilities of a client that the server asks about, read once from its `initialize`."""

from dataclasses import dataclass
from typing import Any

from lsprotocol import types

_OWN = ("drafts", "status", "covers", "confirm", "apart", "grows", "inside", "pairs")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of one client.

    configuration: it answers a request for its settings. tells_settings, tells_files: it registers for their changes.
    applies: it makes an edit when asked. versions: an edit may name the document's version. annotations: it asks a
    person before it makes an edit whose annotation says so. resolves: a code action may get its edit later.
    tags: a code action may be marked as made by a model. progress: it shows progress that the server begins.
    debounces: it waits by itself until the user pauses. Of `experimental.dgLsp`: drafts and status: it takes these
    notifications; covers: it shows ghost text that replaces closed brackets; confirm: it asks a person where the result
    of a command says why; apart: it tells the user's settings apart from the workspace's; grows: it asks again for
    ghost text that has got longer; inside: it puts the cursor into the empty block that an accepted text ends with;
    pairs: it closes the brackets and strings that an accepted beginning of a text leaves open.
    """

    configuration: bool = False
    tells_settings: bool = False
    tells_files: bool = False
    applies: bool = False
    versions: bool = False
    annotations: bool = False
    resolves: bool = False
    tags: bool = False
    progress: bool = False
    debounces: bool = False
    drafts: bool = False
    status: bool = False
    covers: bool = False
    confirm: bool = False
    apart: bool = False
    grows: bool = False
    inside: bool = False
    pairs: bool = False


def capabilities_of(params: types.InitializeParams) -> Capabilities:
    """Return the abilities that a client states in `params`."""

    def has(path: str) -> Any:
        value: Any = params.capabilities
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    versions = bool(has("workspace.workspace_edit.document_changes"))
    experimental = params.capabilities.experimental
    ours = experimental.get("dgLsp") if isinstance(experimental, dict) else None
    own = ours if isinstance(ours, dict) else {}
    return Capabilities(
        configuration=bool(has("workspace.configuration")),
        tells_settings=bool(has("workspace.did_change_configuration.dynamic_registration")),
        tells_files=bool(has("workspace.did_change_watched_files.dynamic_registration")),
        applies=bool(has("workspace.apply_edit")),
        versions=versions,
        annotations=versions and bool(has("workspace.workspace_edit.change_annotation_support")),
        resolves="edit" in (has("text_document.code_action.resolve_support.properties") or ()),
        tags=types.CodeActionTag.LlmGenerated
        in (has("text_document.code_action.tag_support.value_set") or ()),
        progress=bool(has("window.work_done_progress")),
        # Neovim waits 200 ms before it asks.
        debounces=bool(params.client_info and params.client_info.name.startswith("Neovim")),
        **{name: bool(own.get(name)) for name in _OWN},
    )
