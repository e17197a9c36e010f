"""Draws docs/settling.svg: how the canvases of a few gaps settle, from a real run of the embedded checkpoint.

    python -m benchmarks.picture [--seed 1] [--to docs/settling.svg]

Each gap of SOURCE stands between ⟦ and ⟧. They are filled one after the other, each with all else of the file as it
stands. Of what stands between the marks the model is told the length only, and the program ends where its fill is
another. Every frame of the picture is one Draft, in its order; only the pace is slower than the run's. The picture is
plain SVG with CSS, without scripts; where nothing moves, its last frame is shown.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from dg_lsp.cli.settling import Context, columns, shade, visible
from dg_lsp.engine.local import LocalEngine
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gap
from dg_lsp.text.messages import Fill, Run
from dg_lsp.text.prompts import prompt

SOURCE = """\
class Dog(Animal):
    def __init__(self, name, age, owner=None):
        super().__init__(⟦name, age⟧)
        self.owner = owner

    def give_to(⟦self, owner⟧):
        self.owner = owner

    def has_owner(self):
        return ⟦self.owner⟧ is not None
"""
WIDE, HIGH, LEFT, TOP = 9.0, 24, 24, 62  # a character, a line, and where the text begins
STEP, REST = 0.45, 1.6  # seconds that a step and a finished fill are shown
WIDTH = 760
_STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --dim: #6e7781; --rule: #d0d7de; --fixed: #e7eaee; --done: #c6ecd0; }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --dim: #8b949e; --rule: #30363d;
  --fixed: #2b313a; --done: #1b4d2b; } }
text { font: 15px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink);
  white-space: pre; }
.said { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.context { fill: var(--dim); }
.anchor { fill: var(--fixed); }
.done { fill: var(--done); }
.mark { fill: #0b6b50; }
.on { fill: #10151a; }
.frame { opacity: 0; animation-duration: %(seconds).2fs; animation-iteration-count: infinite;
  animation-timing-function: step-end; }
.last { opacity: 1; }
@media (prefers-reduced-motion: reduce) { .frame { animation: none !important; } }
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the text round the canvas, the canvas, what is said below, and how long it is shown."""

    context: Context
    runs: tuple[Run, ...]
    said: str
    seconds: float
    done: bool = False


def gaps(source: str) -> Iterator[tuple[str, str, str]]:
    """The text before each marked gap, the gap's own, and the text behind it, all without marks."""
    for match in re.finditer("⟦(.*?)⟧", source, re.DOTALL):
        before, after = source[: match.start()], source[match.end() :]
        yield re.sub("[⟦⟧]", "", before), match[1], re.sub("[⟦⟧]", "", after)


async def frames_of(engine: LocalEngine, gap: tuple[str, str, str], settings: Settings) -> list[Frame]:
    """The frames of one gap: the file with the gap, each Draft, the fill.

    Raises:
        SystemExit: the fill is another than the source says.
    """
    before, wanted, after = gap
    document = Document("picture.py", "python", 0, (before + after).encode())
    found = find_gap(document, len(before.encode()))
    request = replace(prompt.build(document, found, settings), like=wanted)
    here, empty = (
        Context(before, after),
        Run(" " * columns(wanted), anchored=False, accepted=False, entropy=3.0),
    )
    kind = found.kind.replace("_", " ")
    frames = [Frame(here, (empty,), f"a gap ({kind}): its slots are noise", REST / 2)]
    fill = Fill("")
    async for event in engine.infill(request):
        if isinstance(event, Fill):
            fill = event
        elif event.runs:
            round_it = Context(before.removesuffix(_head(event.runs)), after.removeprefix(_tail(event.runs)))
            frames.append(Frame(round_it, event.runs, f"step {len(frames)}", STEP))
    if fill.text != wanted:
        sys.exit(f"the fill is {fill.text!r}, not {wanted!r}; try another --seed")
    said = f"settled after {len(frames) - 1} steps"
    run = Run(wanted, anchored=False, accepted=True, entropy=0.0)
    return [*frames, Frame(here, (run,), said, REST, done=True)]


def _head(runs: Sequence[Run]) -> str:
    """The text of the anchors before the first free slot."""
    first = next((n for n, run in enumerate(runs) if not run.anchored), len(runs))
    return "".join(run.text for run in runs[:first])


def _tail(runs: Sequence[Run]) -> str:
    """The text of the anchors behind the last free slot."""
    return _head(tuple(Run(r.text[::-1], r.anchored, r.accepted, r.entropy) for r in reversed(runs)))[::-1]


def picture(frames: Sequence[Frame], title: str) -> str:
    """The frames as one SVG, shown one after the other."""
    seconds = sum(frame.seconds for frame in frames)
    rows = max(_text(frame).count("\n") for frame in frames)
    height = TOP + HIGH * rows + 48
    keys, groups, begin = [], [], 0.0
    for number, frame in enumerate(frames):
        start, end = 100 * begin / seconds, 100 * (begin + frame.seconds) / seconds
        first = "0%{opacity:0}" if number else ""
        keys.append(f"@keyframes f{number}{{{first}{start:.2f}%{{opacity:1}}{end:.2f}%{{opacity:0}}}}")
        last = " last" if number == len(frames) - 1 else ""
        groups.append(f'<g class="frame{last}" style="animation-name:f{number}">{_drawn(frame, height)}</g>')
        begin += frame.seconds
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" \
role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>{_STYLE % {"seconds": seconds}}{"".join(keys)}</style>
<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8" style="fill:var(--paper);stroke:var(--rule)"/>
{_legend()}
{chr(10).join(groups)}
</svg>
"""


def _text(frame: Frame) -> str:
    return frame.context.before + "".join(run.text for run in frame.runs) + frame.context.after


def _drawn(frame: Frame, height: int) -> str:
    """The file with the canvas in it, and the line below."""
    spans: list[tuple[str, Run | None]] = [(frame.context.before, None)]
    spans += [(run.text, run) for run in frame.runs]
    spans.append((frame.context.after, None))
    column, row, drawn = 0, 0, []
    for text, run in spans:
        for number, piece in enumerate(visible(text, "\n").split("\n")):
            if number:
                column, row = 0, row + 1
            if piece:
                drawn.append(_piece(piece, run, (column, row), frame.done))
                column += columns(piece)
    said = f'<text class="said" x="{LEFT}" y="{height - 18}">{escape(frame.said)}</text>'
    return "".join(drawn) + said


def _piece(piece: str, run: Run | None, place: tuple[int, int], done: bool) -> str:
    """One piece of a line; a piece of the canvas has a ground."""
    x, y = LEFT + place[0] * WIDE, TOP + place[1] * HIGH
    width = max(columns(piece), 1) * WIDE
    bare = piece.strip()
    ground, kind = "", "context"
    if run is not None:
        fill = (
            'class="done"' if done else 'class="anchor"' if run.anchored else f'fill="{_shade(run.entropy)}"'
        )
        kind = "ink" if run.anchored or done else "on"
        ground = f'<rect x="{x:g}" y="{y - 17}" width="{width:g}" height="{HIGH - 1}" {fill}/>'
        if run.accepted and not run.anchored and not done and piece:
            ground += f'<rect x="{x:g}" y="{y + 4}" width="{width:g}" height="2" class="mark"/>'
    if not bare:
        return ground
    x += (len(piece) - len(piece.lstrip())) * WIDE
    length = columns(bare) * WIDE
    return f'{ground}<text class="{kind}" x="{x:g}" y="{y}" textLength="{length:g}">{escape(bare)}</text>'


def _shade(entropy: float) -> str:
    """From green (sure) to amber (unsure), both light enough for dark letters."""
    level = shade(entropy)
    sure, unsure = (143, 221, 190), (247, 180, 84)
    return "#" + "".join(f"{round(a + (b - a) * level):02x}" for a, b in zip(sure, unsure, strict=True))


def _legend() -> str:
    """What the grounds mean, above the text."""
    x, drawn = LEFT, []
    sure, unsure = f'fill="{_shade(0)}"', f'fill="{_shade(3)}"'
    for words, fill in (("anchor: stays", 'class="anchor"'), ("free: unsure", unsure), ("sure", sure)):
        drawn.append(f'<rect x="{x}" y="12" width="12" height="12" rx="2" {fill}/>')
        drawn.append(f'<text class="said context" x="{x + 18}" y="22">{words}</text>')
        x += 34 + 7 * len(words)
    drawn.append(f'<rect x="{x}" y="20" width="12" height="2" style="fill:var(--ink)"/>')
    drawn.append(f'<text class="said context" x="{x + 18}" y="22">accepted in this step</text>')
    return "".join(drawn)


async def _run(seed: int) -> list[Frame]:
    settings = Settings(seed=seed, threads=1)
    engine = LocalEngine.open(settings)
    try:
        return [frame for gap in gaps(SOURCE) for frame in await frames_of(engine, gap, settings)]
    finally:
        await engine.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the engine and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, default=Path("docs/settling.svg"))
    given = parser.parse_args(argv)
    frames = asyncio.run(_run(given.seed))
    title = f"Gaps of a file settle: a run of the embedded checkpoint, seed {given.seed}, lengths given, slowed down"
    given.to.write_text(picture(frames, title), encoding="utf-8")
    print(f"{given.to}: {len(frames)} frames, {given.to.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
