"""Whose step is next on the model thread."""

import asyncio
from collections.abc import Sequence

import pytest

from dg_lsp.engine.turn import Turns
from dg_lsp.filling.engine import EngineBusy
from dg_lsp.messages import Infill, Priority


def asked(priority: Priority = "bot", window: str = "w", session: str = "d") -> Infill:
    return Infill("", "", "python", "statement", priority=priority, window=window, session=session)


async def _live(turns: Turns, request: Infill, steps: int, order: list[str], name: str) -> None:
    """An infill that makes `steps` steps and writes its name into `order` at each."""
    with turns.seat(request) as seat:
        for _ in range(steps):
            async with turns.turn(seat):
                order.append(name)
                # Another thread makes the step meanwhile.
                await asyncio.sleep(0)


def order_of(
    infills: Sequence[tuple[str, Infill, int]], later: Sequence[tuple[str, Infill, int]] = ()
) -> str:
    """The names in the order of their steps; `later` come while the first step is made."""

    async def work() -> str:
        turns, order = Turns(), list[str]()
        tasks = [asyncio.create_task(_live(turns, r, n, order, name)) for name, r, n in infills]
        while not order:
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(_live(turns, r, n, order, name)) for name, r, n in later]
        await asyncio.gather(*tasks)
        assert turns.waiting == 0
        return "".join(order)

    return asyncio.run(asyncio.wait_for(work(), 60))


def test_ghost_text_waits_for_one_step_of_a_bot_and_then_makes_all_of_its_own() -> None:
    assert order_of([("b", asked("bot"), 6)], [("g", asked("ghost"), 3)]) == "bgggbbbbb"


def test_ghost_text_comes_before_fills_and_those_before_bots_and_work_ahead_last() -> None:
    infills = [
        ("a", asked("ahead"), 1),
        ("b", asked("bot"), 1),
        ("f", asked("fill"), 1),
        ("g", asked("ghost"), 1),
    ]
    assert order_of([("x", asked("ghost"), 1)], infills) == "xgfba"


def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next() -> None:
    async def work() -> None:
        turns, order = Turns(), list[str]()
        tasks = [asyncio.create_task(_live(turns, asked(), 1, order, name)) for name in "12"]
        while not (given := [seat for seat, ready in turns._waiting.items() if ready.done()]):
            await asyncio.sleep(0)
        # It has the turn, and has not run since.
        assert not order
        tasks[given[0].number - 1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["21"[given[0].number - 1]] and turns.waiting == 0

    asyncio.run(asyncio.wait_for(work(), 60))


def test_the_newest_of_a_document_comes_first() -> None:
    assert order_of([("1", asked(), 3)], [("2", asked(), 2), ("3", asked(), 2)]) == "1332211"


def test_ghost_text_that_has_begun_is_finished_before_the_next_begins() -> None:
    ghosts = [(name, asked("ghost", window=name), 3) for name in "abc"]
    assert sorted(order_of(ghosts)[::3]) == ["a", "b", "c"]
    assert order_of(ghosts[:1], [("n", asked("ghost", window="n"), 2)]) == "aaann"
    # But not before what has a higher place; and it goes on where it was.
    assert order_of([("w", asked("ahead"), 3)], ghosts[:1]) == "waaaww"


def test_windows_share_the_steps_however_many_documents_one_of_them_fills() -> None:
    many = [(str(n), asked(window="w", session=str(n)), 4) for n in range(3)]
    order = order_of(many, [("o", asked(window="o"), 4)])
    # From its first step on, every other step is the other window's.
    first = order.index("o")
    assert first <= 2 and order[first : first + 8 : 2] == "oooo"
    # And its own documents take turns: none waits for the end of another.
    assert set(order[first + 1 : first + 7 : 2]) == {"0", "1", "2"}


def test_cancelled_waiters_leave_and_nobody_waits_for_ever() -> None:
    async def work() -> list[str]:
        turns, order = Turns(), list[str]()
        tasks = [
            asyncio.create_task(_live(turns, asked(session=str(n)), 1, order, str(n))) for n in range(50)
        ]
        await asyncio.sleep(0)
        for n in (3, 7, 8):
            tasks[n].cancel()
        await asyncio.sleep(0)
        # The one that has been given the turn but has not run yet.
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _live(turns, asked(), 1, order, "last")
        return order

    done = asyncio.run(asyncio.wait_for(work(), 60))
    assert sorted(done[:-1], key=int) == [str(n) for n in range(50) if n not in (0, 3, 7, 8)]
    assert done[-1] == "last"


def test_one_step_is_made_at_a_time() -> None:
    async def work() -> int:
        turns, inside, most = Turns(), 0, 0

        async def live(number: int) -> None:
            nonlocal inside, most
            with turns.seat(asked(session=str(number))) as seat:
                for _ in range(3):
                    async with turns.turn(seat):
                        inside += 1
                        most = max(most, inside)
                        await asyncio.sleep(0)
                        inside -= 1

        await asyncio.gather(*(live(number) for number in range(20)))
        return most

    assert asyncio.run(work()) == 1


def test_beyond_the_seats_the_engine_is_busy() -> None:
    turns = Turns(most=2)
    with (
        turns.seat(asked()),
        turns.seat(asked()),
        pytest.raises(EngineBusy, match="busy: 2 fills are asked for already"),
        turns.seat(asked()),
    ):
        pass
    with turns.seat(asked()):
        pass
