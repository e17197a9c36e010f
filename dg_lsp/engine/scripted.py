"""An engine with fixed answers, for tests and for trying a front end without a checkpoint.

It follows the protocol `filling.engine.Engine` and has no model. Its name as a checkpoint is `scripted`, or
`scripted:STEPS:MILLISECONDS` for that many steps of that length. It is unsure on lines that hold a word of CHANCES, and
writes the text after SAYS in the lines above, or the rest of it. Below text that is shown it writes the next of the
lines after THEN.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import PARTS, Draft, Fill, Infill, Run
from dg_lsp.reasons import NO_WORD

SCRIPTED = "scripted"  # the beginning of its name as a checkpoint
_BODIES = ("return None", "return True", "return False", "return 0")
_LINES = ("None", "True", "False", "0")
# Words that a line of a test's file may hold before the gap, and the chances that a fill then has.
CHANCES = {"unsure": 0.12, "doubtful": 0.04}
# A comment above the gap that holds the text to write, with END for a line's end: `# says: total = 1⏎return total`.
SAYS, THEN, END = "says: ", "then: ", "⏎"


class ScriptedEngine:
    """An engine that answers each Infill with `drafts` and then `answer`, a Fill or a function that makes one.

    pause: seconds of a step. first_step: those that each of the first ones may take. requests: the Infills so far.
    closed: whether `close` was called. passes: steps made.
    """

    device, patience = "none", 20.0

    def __init__(
        self, answer: Fill | Callable[[Infill], Fill], drafts: Sequence[Draft] = (), pause: float = 0.0
    ) -> None:
        self._answer, self._drafts, self._pause = answer, tuple(drafts), pause
        self.requests: list[Infill] = []
        self.closed, self.why = False, ""
        self.passes, self.first_step = 0, 60.0

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the drafts and the answer."""
        if self.closed:
            raise EngineError("the engine is closed; open another")
        self.requests.append(request)
        start = time.perf_counter()
        for draft in self._drafts:
            # As with a real engine, the event loop runs between two steps.
            await asyncio.sleep(self._pause)
            self.passes += 1
            yield draft
        fill = self._answer if isinstance(self._answer, Fill) else self._answer(request)
        yield replace(fill, milliseconds=fill.milliseconds or (time.perf_counter() - start) * 1000)

    async def close(self) -> None:
        """End the engine; a later `infill` raises."""
        self.closed = True

    def numbers(self) -> dict[str, int]:
        """Return the steps made; there is no model, and no queue."""
        return {"passes": self.passes}


def open_scripted(name: str) -> ScriptedEngine:
    """Return the engine called `scripted` or `scripted:STEPS:MILLISECONDS`."""
    _, *numbers = name.split(":")
    if len(numbers) not in (0, 2) or not all(n.isdigit() for n in numbers):
        raise EngineError(f"{name!r} is no scripted engine; write scripted or scripted:STEPS:MILLISECONDS")
    steps, milliseconds = (int(n) for n in numbers or ("0", "0"))
    drafts = [
        Draft(n, (Run("?", anchored=False, accepted=False, entropy=1.0),), 0.0) for n in range(1, steps + 1)
    ]
    return ScriptedEngine(_scripted, drafts, milliseconds / 1000)


def _scripted(request: Infill) -> Fill:
    if request.shown:
        return _below(request)
    known: tuple[str, ...] = _BODIES if request.kind not in PARTS else _LINES
    if rest := _said(request):
        known = (rest,)
    elif request.endings == ():
        return Fill("", parses=False, refusal=NO_WORD)
    elif request.endings:
        # After a word that is complete a call follows.
        known = tuple(ending or "()" for ending in request.endings)
    # Another seed begins at another text.
    first = request.seed % len(known)
    texts = known[first:] + known[:first]
    others, further = texts[1 : request.alternatives], texts[:1] * len(request.between)
    # A body has the line of its header above it.
    lines = re.split(r"[\r\n]", request.prefix)[-1 if request.kind in PARTS else -2 :]
    chance = next((share for word, share in CHANCES.items() if word in " ".join(lines)), None)
    grows = THEN in request.prefix
    return Fill(
        texts[0], steps=1, reason="stable", others=others, further=further, chance=chance, grows=grows
    )


def _below(request: Infill) -> Fill:
    """Return the text that `request` shows with the next line of those that belong below it."""
    lines = request.prefix.rpartition(THEN)[2].split("\n")[0].split(END)
    line = next((one for one in lines if one not in request.shown), "")
    if not line:
        return Fill("", parses=False, refusal="nothing more belongs below the text")
    head = request.prefix.split("\n")[-1]
    lead = "\n" + head[: len(head) - len(head.lstrip())]
    return Fill(request.shown + lead + line, steps=1, reason="stable", chance=request.chance, grows=True)


def _said(request: Infill) -> str:
    """Return the rest of the text in a comment above the gap; empty if the gap's line does not begin like it."""
    *above, line = request.prefix.split("\n")
    said = next((text.partition(SAYS)[2] for text in reversed(above) if SAYS in text), "")
    typed, closers = line.lstrip(), request.suffix.split("\n")[0].strip()
    said = said.replace(END, "\n" + line.removesuffix(typed))
    return said.removeprefix(typed).removesuffix(closers) if said.startswith(typed) else ""
