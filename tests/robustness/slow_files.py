"""Files that hang a parser or slow it down, opened in the real server: each is answered, and nobody else waits."""

import os
import time

from dg_lsp.source.language import known_languages
from tests.processes import own_runtime
from tests.robustness.bad_files import OTHERS, waits_for
from tests.robustness.readers import kept
from tests.robustness.row import Row, complaint, missed
from tests.robustness.window import Window

ANSWERED, ENDED = 0.5, 2.0  # seconds for an answer, and for the process to end while a text is being read


def slow_files(times: int) -> Row:
    """Ask for ghost text in each kept text of each language, `times` times; at last end the server in the middle."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted"
    took, others = dict[str, float](), dict[str, float]()
    with own_runtime():
        window = Window()
        for _ in range(times):
            for language in known_languages():
                for number, text in enumerate(kept(language)):
                    name = f"{language} {number}"
                    took[name], others[name] = waits_for(
                        window, name.replace(" ", "-"), text, language, kind=2
                    )
        lost, noise = window.odd(), complaint(window.wire.stderr)
        uri, text = "file:///w/last.tsx", kept("tsx")[0]
        window.open(uri, text, "typescriptreact")
        window.ask("textDocument/inlineCompletion", window.inline(uri, len(text), 1))
        began = time.monotonic()
        code = window.close()
        ended = time.monotonic() - began
    slow = {name: round(seconds, 2) for name, seconds in took.items() if seconds > ANSWERED}
    late = {name: round(seconds, 3) for name, seconds in others.items() if seconds > OTHERS}
    return Row(
        "texts that hang a parser or take it quadratic time",
        f"answered within {ANSWERED} s; others within {OTHERS * 1000:.0f} ms; the end within {ENDED:.0f} s",
        f"{len(took)} texts: at most {max(took.values()):.2f} s; other requests at most "
        f"{max(others.values()) * 1000:.0f} ms; ended after {ended:.2f} s",
        missed(
            (bool(lost), f"not answered once: {lost[:3]}"),
            (bool(noise), noise),
            (code != 0, f"exit code {code}"),
        ),
        missed(
            (bool(slow), f"slow: {slow}"),
            (bool(late), f"others waited: {late}"),
            (ended > ENDED, "ended late"),
        ),
    )
