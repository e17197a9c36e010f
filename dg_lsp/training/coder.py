"""The checkpoints coder and coder-0.5b: a published GGUF file as it is, with a description, a notice and a manifest."""

import json
from pathlib import Path
from typing import Any

from dg_lsp.checkpoints import ABOUT, MANIFEST, CheckpointError, read_about, read_json
from dg_lsp.model.manifest import write_manifest
from dg_lsp.training.fetching import Progress, put_in_place, working
from dg_lsp.training.packages import Pinned, get_network, pinned_network

# Tokens of a prefix; a CPU reads some 100 to 300 a second.
_MAX_PREFIX = 1024
_NOTICE = """# {name}

The file {file} as its authors publish it, unchanged: {name} in GGUF.
sha256 {sha256}

Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
Copyright Alibaba Cloud. Distributed on an "AS IS" basis, without warranties or conditions of any kind.
"""


def fetch_coder(name: str, to: Path, file: Path | None, progress: Progress) -> None:
    """Make the checkpoint `name`, coder or coder-0.5b, in the folder `to`. file: the network's, if it is here already.

    Where that fails an older checkpoint stays, and fetched parts are kept for the next try.
    """
    pinned = pinned_network(name)
    with working(to) as folder:
        network = get_network(pinned, file, folder, progress)
        made = folder / "made"
        made.mkdir(exist_ok=True)
        (made / ABOUT).write_text(json.dumps(_about(pinned), indent=1) + "\n", encoding="utf-8")
        (made / "README.md").write_text(
            _NOTICE.format(name=pinned.name, file=pinned.file, sha256=pinned.sha256), encoding="utf-8"
        )
        write_manifest(made, {pinned.file: {"sha256": pinned.sha256, "bytes": pinned.bytes}})
        network.replace(made / pinned.file)
        put_in_place(made, to)


def is_current(name: str, folder: Path) -> bool:
    """Return whether `folder` holds the checkpoint `name` of this release."""
    pinned = pinned_network(name)
    try:
        listed = read_json(folder / MANIFEST)["files"][pinned.file]["sha256"]
        whole = (folder / pinned.file).stat().st_size == pinned.bytes
        return whole and listed == pinned.sha256 and read_about(folder) == _about(pinned)
    except (CheckpointError, OSError, LookupError, TypeError):
        return False


def _about(pinned: Pinned) -> dict[str, Any]:
    """Return the description in dg_lsp.json."""
    about: dict[str, Any] = {"name": pinned.name, "licence": pinned.licence, "file": pinned.file}
    return about | {"prompt": "fim", "denoises": False, "max_prefix_tokens": _MAX_PREFIX}
