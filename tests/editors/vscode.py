"""Runs `vscode.mjs`: hands it a job, gives back its result. Knows where its parts lie and what the server needs."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.editors.sandbox import CHROMIUM, EDITORS, HERE, NODE, Sandbox


def drive(
    sandbox: Sandbox, task: str, settings: Mapping[str, object] | None = None, **needs: object
) -> dict[str, Any]:
    """Let VS Code do the task, with further editor settings; the screenshots lie in `shots` beside the project.

    Raises:
        AssertionError: the task was not done to its end; names the steps done and where the pictures lie.
    """
    shots = sandbox.root / "shots"
    shots.mkdir()
    server = {"dgLspTest.command": sandbox.command, "dgLspTest.environment": sandbox.environment}
    job = {
        "editors": str(EDITORS),
        "chromium": str(CHROMIUM),
        "extension": str(HERE / "vscode"),
        "home": str(sandbox.root / "home"),
        "project": str(sandbox.project),
        "shots": str(shots),
        "environment": sandbox.environment,
        "settings": {**server, **(settings or {})},
        "task": task,
        **needs,
    }
    done = subprocess.run(
        [str(NODE), str(HERE / "vscode.mjs")],
        input=json.dumps(job),
        env=sandbox.environment,
        cwd=sandbox.project,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ok"], f"{result['error']}\nafter {result['steps']}; pictures and logs: {shots}"
    return result
