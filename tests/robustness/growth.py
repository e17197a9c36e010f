"""What hours of typing leave in a server's memory: keys, answers, accepted fills and bodies, as fast as they go."""

import os
import re
import statistics
import time
from itertools import islice

from tests.processes import own_runtime, resident
from tests.robustness.row import Row, missed
from tests.robustness.soak import MARKS, Person

# Keys that somebody who never rests types in 10 minutes, and the megabytes by which a server may grow meanwhile.
TEN_MINUTES, MOST = 3_000, 1.0
_LOOK = 100  # keys between two looks at the memory
_WAVE, _RUSH, _BETWEEN = (
    50,
    12,
    0.06,
)  # of so many keys so many come in a rush, with so many seconds between two


def growth(count: int) -> Row:
    """Large documents, then `count` keys of one person, answered, cancelled or asked for; a body at every hundredth."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted:1:1"
    samples = list[tuple[int, float]]()
    with own_runtime():
        person = Person(MARKS[0], None)
        window, bodies, shown = person.window, 0, 0
        person.open_large()
        for number, (uri, key) in enumerate(islice(person.strokes(), count)):
            asked = person.typed(uri, key)
            if number % 3 == 0:
                window.tell("$/cancelRequest", {"id": asked})
            # Some keys come before the work for those above them has ended, which runs on when it is cancelled.
            if number % _WAVE >= _RUSH:
                shown += bool((person.answer(asked).get("result") or {"items": []})["items"])
            else:
                time.sleep(_BETWEEN)
            if number % _LOOK == 0:
                names = re.findall(r"^def (\w+)", window.texts[uri], re.MULTILINE)
                if names:
                    reply = person.fill(uri, names[0])
                    bodies += bool((reply.get("result") or {}).get("edit"))
                samples.append((number, resident(window.wire.process.pid) / 2**20))
        person.answer(asked)
        lost = window.not_once()
        window.close()
    late = samples[len(samples) // 2 :]
    slope = statistics.linear_regression(*zip(*late, strict=True)).slope * TEN_MINUTES
    return Row(
        "memory of a server, typing without rest",
        f"after warm-up less than {MOST:.0f} MB in {TEN_MINUTES:,} keys (10 minutes at five a second)",
        f"{count:,} keys, {shown:,} ghost texts, {bodies:,} bodies: {samples[0][1]:.0f} MB at first, "
        f"{late[0][1]:.1f} after half, {late[-1][1]:.1f} at the end, {slope:+.2f} MB in {TEN_MINUTES:,} keys",
        missed((lost > 0, f"{lost} ids not answered once"), (not shown, "nothing was filled")),
        missed((slope > MOST, f"{slope:+.1f} MB")),
    )
