"""Client: the messages to the editor or bot. No other module sends them."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from dg_lsp.gaps import Gap
from dg_lsp.messages import Draft
from dg_lsp.server.capabilities import Capabilities, capabilities_of
from dg_lsp.server.progress import Progress
from dg_lsp.server.rpc.protocol import ClientError, Server
from dg_lsp.server.settings import Reported
from dg_lsp.server.snapshot import Snapshot

SECTION = "dg-lsp"
# The section of the user's own settings, which only a client that keeps them apart is asked for: what it answers is no
# workspace's.
USER = "dg-lsp-user"
# Seconds that a client has to apply an edit.
APPLYING = 30.0
_DRAFTS = 1 / 20  # seconds between two Drafts
_LONGEST_WHY = 300  # characters of a client's own error
_log = logging.getLogger("dg_lsp.server")


class Client:
    """The client of a server.

    can: its abilities. options: its initialization options. prefix: the beginning of the names of its commands.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.can = Capabilities()
        self.options: dict[str, Any] = {}
        self.prefix = ""
        self._warned: set[str] = set()
        self._asked = self._reported = 0

    def introduce(self, params: types.InitializeParams) -> None:
        """Keep the capabilities and options of the client; its option commandPrefix prefixes the names of the commands.

        Two clients in one editor may not use the same names.
        """
        self.can = capabilities_of(params)
        given = params.initialization_options
        if given is not None and not isinstance(given, dict):
            _log.warning("initializationOptions must be an object; the defaults are used")
        self.options = dict(given) if isinstance(given, dict) else {}
        prefix = self.options.pop("commandPrefix", None)
        self.prefix = prefix if isinstance(prefix, str) else ""
        name = params.client_info.name if params.client_info else "a client"
        _log.info("dg-lsp %s for %s", self._server.version, name)

    def warn(self, message: str) -> None:
        """Show a warning to the user; the same one only once in a session."""
        _log.warning("%s", message)
        if message not in self._warned:
            self._warned.add(message)
            self._show(types.MessageType.Warning, message)

    def inform(self, message: str) -> None:
        """Show a message about something that the user has requested."""
        self._show(types.MessageType.Info, message)

    def send_status(self, status: dict[str, Any]) -> None:
        """Send the status to a client that takes it."""
        if self.can.status:
            self._server.protocol.notify("dg-lsp/status", status)

    def send_grown(self, uri: str) -> None:
        """Say that the ghost text of the document `uri` has got longer, to a client that then asks for it again."""
        if self.can.grows:
            self._server.protocol.notify("dg-lsp/grown", {"uri": uri})

    def drafts(self, snapshot: Snapshot, gap: Gap) -> Callable[[Draft], None]:
        """Return a function that sends a Draft of `gap`, at most 20 a second, to a client that takes them."""
        if not self.can.drafts:
            return lambda _: None
        document, protocol, sent = snapshot.document, self._server.protocol, 0.0
        where: dict[str, Any] = {
            "uri": document.uri,
            "version": document.version,
            "range": snapshot.range(*gap.span),
        }
        where["requestId"] = protocol.msg_id

        def send(draft: Draft) -> None:
            nonlocal sent
            if draft.step and time.monotonic() - sent >= _DRAFTS:
                sent = time.monotonic()
                runs = [[run.text, run.anchored, run.accepted, round(run.entropy, 3)] for run in draft.runs]
                protocol.notify("dg-lsp/draft", {**where, "step": draft.step, "runs": runs})

        return send

    def progress(self, title: str, token: types.ProgressToken | None) -> Progress:
        """Return the progress of the current task. token: the client's, if it sent one."""
        return Progress(self._server.work_done_progress, title, token, self.can)

    async def settings(self) -> Reported | None:
        """Return the settings that the client reports; None if it does not. Ones older than the last count as none."""
        sections = (SECTION, USER) if self.can.apart else (SECTION,)
        items = [types.ConfigurationItem(section=section) for section in sections]
        self._asked += 1
        asked = self._asked
        try:
            found = await self._server.workspace_configuration_async(types.ConfigurationParams(items))
            workspace, user = map(_section, [*found, *([] if self.can.apart else [None])])
        except Exception as error:
            _log.warning("the client did not report its settings (%s)", type(error).__name__)
            return None
        if asked < self._reported:
            return None
        self._reported = asked
        return Reported(workspace, user)

    async def register(self, registrations: list[types.Registration]) -> None:
        """Register for notifications."""
        await self._server.client_register_capability_async(types.RegistrationParams(registrations))

    async def apply(self, edit: types.WorkspaceEdit, label: str) -> str:
        """Have the client apply `edit`; return why it did not, as a sentence, empty if it did."""
        asked = self._server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label=label))
        try:
            async with asyncio.timeout(APPLYING):
                answer = await asked
        except TimeoutError:
            return (
                f"the client did not answer within {APPLYING:g} s and may still apply the edit; compare the document "
                "before you apply the edit yourself"
            )
        except ClientError as error:
            return f"the client did not apply the edit: {str(error)[:_LONGEST_WHY] or type(error).__name__}"
        if answer is not None and answer.applied:
            return ""
        return (answer and answer.failure_reason) or "the client did not apply the edit"

    def _show(self, kind: types.MessageType, message: str) -> None:
        self._server.window_show_message(types.ShowMessageParams(kind, f"dg-lsp: {message}"))


def _section(answer: Any) -> dict[str, Any] | None:
    """Return the settings in a client's answer for one section; None if it has none."""
    if answer is not None and not isinstance(answer, dict):
        _log.warning("the client's settings must be an object; what excludes files stays as it was")
    return answer if isinstance(answer, dict) else None
