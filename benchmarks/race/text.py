"""The report of `dg-lsp bench --engine` as tables. Knows the report's names; measures nothing."""

from collections.abc import Sequence
from typing import Any

from benchmarks.race.laps import CONTESTANTS

MISSING = "not installed: pip install 'dg-lsp[bench]'"


def as_text(report: dict[str, Any]) -> str:
    """The tables, the promises, and how to read them."""
    lines: list[str] = []
    for course in report["courses"]:
        lines += [*_course_lines(course), ""]
    lines += [*_fill_lines(report["fills"]), ""]
    for bar in report["bars"]:
        sign, verdict = "at most" if bar["most"] else "at least", "held" if bar["held"] else "missed"
        lines.append(f"{verdict:6}  {bar['what']}: {bar['found']:.2f} ({sign} {bar['wanted']})")
    lines += ["", *(f"{name}: {sentence}" for name, sentence in CONTESTANTS.items())]
    lines.append(
        f"medians of {report['repeats']} turns, taken by the contestants in order, after one that is not counted; "
        "no engine may stop early"
    )
    lines.append(
        "first, whole: seconds to the end of the first step and of the fill; /cold, /typed: as multiples of ours"
    )
    lines.append(
        "fills: the prefix is encoded before; steps, tokens a step: of what was offered; passes: calls of the decoder"
    )
    before, after = (", ".join(f"{value:.1f}" for value in report[name]) for name in ("load", "load_after"))
    lines.append(
        f"{report['machine']}; {report['processor']}; {report['threads']} threads; {report['versions']}"
    )
    lines.append(f"load {before} before and {after} after; {report['date']}; {report['command']}")
    return "\n".join(lines)


def _course_lines(course: dict[str, Any]) -> list[str]:
    told = "prefix {prefix}, canvas {canvas} with {free} free, {steps} steps".format(**course)
    names = (
        "first s",
        "whole s",
        "first/cold",
        "whole/cold",
        "first/typed",
        "whole/typed",
        "steps",
        "GPU MB",
    )
    lines = [told, " ".join([" " * 18, *(f"{name:>11}" for name in names)])]
    for name in CONTESTANTS:
        found = course["engines"].get(name)
        if found is None:
            lines.append(f"  {name:16} {MISSING}")
            continue
        numbers = [found["first"], found["whole"], *found["of_cold"], *found["of_typed"]]
        cells = [f"{n:.3f}" if i < 2 else f"{n:.2f}" for i, n in enumerate(numbers)]
        cells += [str(found["steps"]), f"{found['memory'] / 1e6:.0f}" if found["memory"] else ""]
        lines.append(" ".join([f"  {name:16}", *(f"{cell:>11}" for cell in cells)]).rstrip())
    return lines


def _fill_lines(fills: Sequence[dict[str, Any]]) -> list[str]:
    forms = {
        "holes": "d", "offered": ".2f", "exact": ".2f", "steps": ".1f", "tokens_per_step": ".2f", "passes": ".1f",
        "seconds": ".3f",
    }  # fmt: skip
    wide = {name: max(len(name), 8) for name in forms}
    lines = [" ".join([f"{'whole fills':35}", *(f"{n.replace('_', ' '):>{wide[n]}}" for n in forms)])]
    for fill in fills:
        cells = ["" if fill[n] is None else format(fill[n], form) for n, form in forms.items()]
        told = f"  {fill['kind']:14} {fill['effort']:7} {fill['length']:9}"
        lines.append(
            " ".join([f"{told:35}", *(f"{c:>{wide[n]}}" for c, n in zip(cells, forms, strict=True))])
        )
    return lines
