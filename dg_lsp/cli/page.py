"""One self-contained HTML page that plays the steps of a fill.

Every step is in the page as text, already escaped; the script only chooses which one is shown.
"""

from collections.abc import Sequence
from html import escape

from dg_lsp.cli.settling import Context, mean_entropy, shade, visible
from dg_lsp.text.messages import Draft, Run

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fcfcfa; --dim: #6b7178; --fixed: #e4e6ea;
  --line: #c9cdd2; --sure: #b7e0d6; --unsure: #f2a93b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e6ea; --paper: #16181b; --dim: #858c94;
  --fixed: #343a41; --line: #434a52; --sure: #12544b; --unsure: #b36b00; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 72rem;
  margin: 1.5rem auto;  padding: 0 1rem; }
h1 { font-size: 1.15rem; overflow-wrap: anywhere; }
pre { font: 14px/1.6 ui-monospace, Menlo, Consolas, monospace; border: 1px solid var(--line);
  border-radius: 6px; padding: .8rem; overflow-x: auto; tab-size: 4; }
.controls { display: flex; gap: .8rem; align-items: center; flex-wrap: wrap; }
.controls input { flex: 1 1 16rem; }
button { font: inherit; min-width: 5rem; }
.context { color: var(--dim); }
.anchor { background: var(--fixed); font-weight: 600; border-bottom: 2px solid var(--dim); }
.free { background: color-mix(in oklab, var(--unsure) calc(var(--e) * 100%), var(--sure)); }
.accepted { text-decoration: underline 1.5px; text-underline-offset: 3px; }
.end { opacity: .5; }
.legend span { padding: 0 .35rem; margin-right: .5rem; }
"""
_SCRIPT = """
const steps = [...document.querySelectorAll("section.step")];
const slider = document.getElementById("slider"), button = document.getElementById("play");
let timer = null;
function show(number) {
  steps.forEach((step, n) => { step.hidden = n !== number; });
  slider.value = number;
}
function stop() { clearInterval(timer); timer = null; button.textContent = "Play"; }
function play() {
  if (timer !== null) { stop(); return; }
  if (Number(slider.value) >= steps.length - 1) show(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    if (Number(slider.value) >= steps.length - 1) stop(); else show(Number(slider.value) + 1);
  }, 250);
}
slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
button.addEventListener("click", play);
document.querySelector(".controls").hidden = steps.length < 2;
show(steps.length - 1);
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(drafts: Sequence[Draft], context: Context, title: str) -> str:
    """One HTML page with a slider over the drafts that show a canvas; without scripts all are shown."""
    shown = [draft for draft in drafts if draft.runs]
    sections = "\n".join(_section(d, context, f"{n} of {len(shown)}") for n, d in enumerate(shown, start=1))
    nothing = "" if shown else "<p>No step was denoised, so there is nothing to show.</p>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="legend"><span class="anchor">fixed</span><span class="free" style="--e:0">free, sure</span>
<span class="free" style="--e:0.5">to</span><span class="free" style="--e:1">unsure</span>
<span class="free accepted" style="--e:0">accepted</span> <span class="context">context</span></p>
<div class="controls" hidden><button id="play" type="button">Play</button>
<input id="slider" type="range" min="0" max="{max(len(shown) - 1, 0)}" step="1" aria-label="step"></div>
{sections}{nothing}
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _section(draft: Draft, context: Context, place: str) -> str:
    """One step: its line of numbers and its canvas."""
    state = f"{place}: step {draft.step}, {draft.milliseconds:.0f} ms, mean entropy {mean_entropy(draft):.2f}"
    before, after = (escape(visible(text, "\n")) for text in (context.before, context.after))
    canvas = "".join(map(_span, draft.runs))
    return (
        f'<section class="step"><p>{state}</p>\n<pre><span class="context">{before}</span>{canvas}'
        f'<span class="context">{after}</span></pre></section>'
    )


def _span(run: Run) -> str:
    if run.anchored:
        return f'<span class="anchor">{escape(visible(run.text, chr(10)))}</span>'
    text = escape(visible(run.text)).replace("↵", '<span class="end">↵</span>')
    kind = "free accepted" if run.accepted else "free"
    hint = f"{run.entropy:.2f} nats"
    return f'<span class="{kind}" style="--e:{shade(run.entropy):.2f}" title="{hint}">{text}</span>'
