"""The learning curve of a run: points from its log, and an SVG picture of the points. Knows numbers only."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_BINS = 120
_SHOWN = {"diffusion": "#b3261e", "ahead": "#1b5e9b"}
_NAMES = {"diffusion": "denoiser, mean over all times", "ahead": "encoder, next token"}
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 360, 56, 44

Point = dict[str, float]  # tokens in millions, and both losses in nats a token


def read_log(log: Path) -> list[Point]:
    """The losses in `log`, a file of JSON lines, averaged over at most 120 parts of the run; [] without the file."""
    if not log.exists():
        return []
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    stepped = [line for line in lines if "diffusion" in line]
    size = -(-len(stepped) // _BINS) or 1
    parts = [stepped[n : n + size] for n in range(0, len(stepped), size)]
    return [
        {"tokens": round(part[-1]["tokens"] / 1e6, 3)}
        | {name: round(sum(line[name] for line in part) / len(part), 4) for name in _SHOWN}
        for part in parts
    ]


def picture(points: Sequence[Point], title: str) -> str:
    """An SVG picture of both losses over the tokens shown, under `title`."""
    most = max((p["tokens"] for p in points), default=1.0) or 1.0
    top = max((p[name] for p in points for name in _SHOWN), default=1.0)
    right, down = _WIDTH - _LEFT - 16, _HEIGHT - _BOTTOM - 40

    def place(tokens: float, loss: float) -> str:
        return f"{_LEFT + right * tokens / most:.1f},{40 + down * (1 - loss / top):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for loss in _ticks(top):
        begin, end = place(0, loss), place(most, loss)
        parts.append(f'<polyline points="{begin} {end}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{float(begin.split(",")[1]) + 4}" text-anchor="end">{loss:g}</text>'
        )
    for tokens in _ticks(most):
        x = place(tokens, 0).split(",")[0]
        parts.append(f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{tokens:g}</text>')
    parts.append(f'<text x="{_WIDTH - 16}" y="{_HEIGHT - 8}" text-anchor="end">million tokens shown</text>')
    for number, (name, colour) in enumerate(_SHOWN.items()):
        line = " ".join(place(p["tokens"], p[name]) for p in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        y = _HEIGHT - _BOTTOM - 30 + 18 * number
        parts.append(
            f'<text x="{_WIDTH - 20}" y="{y}" text-anchor="end" fill="{colour}">{_NAMES[name]}: nats a token</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _ticks(most: float) -> Iterator[float]:
    """About nine round numbers from 0 to `most`."""
    step = next((s for s in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if most / s <= 9), 1000)
    value = 0.0
    while value <= most:
        yield value
        value += step
