"""Who may use the model thread next."""

import asyncio

from dg_lsp.host.turn import Turn


async def _hold(turn: Turn, rank: int, name: str, order: list[str]) -> None:
    async with turn.take(rank):
        order.append(name)
        await asyncio.sleep(0)


def test_the_lowest_rank_comes_first_and_then_who_came_first() -> None:
    async def work() -> list[str]:
        turn, order = Turn(), []  # type: ignore[var-annotated]
        names = [(1, "first"), (1, "slow"), (0, "quick"), (1, "slow too"), (0, "quick too")]
        tasks = [asyncio.create_task(_hold(turn, rank, name, order)) for rank, name in names]
        await asyncio.sleep(0)
        assert turn.waiting == 4
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(work()) == ["first", "quick", "quick too", "slow", "slow too"]


def test_cancelled_waiters_leave_and_nobody_waits_for_ever() -> None:
    async def work() -> list[str]:
        turn, order = Turn(), []  # type: ignore[var-annotated]
        tasks = [asyncio.create_task(_hold(turn, 1, str(n), order)) for n in range(50)]
        await asyncio.sleep(0)
        # Some in the queue, and the one that has just been given the turn but has not run yet.
        for n in (3, 7, 8):
            tasks[n].cancel()
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turn.waiting == 0
        async with turn.take(1):
            return order

    done = asyncio.run(asyncio.wait_for(work(), 5))
    assert done == [str(n) for n in range(50) if n not in (1, 3, 7, 8)]


def test_only_one_holds_it() -> None:
    async def work() -> int:
        turn, inside, most = Turn(), 0, 0

        async def hold() -> None:
            nonlocal inside, most
            async with turn.take(0):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(hold() for _ in range(20)))
        return most

    assert asyncio.run(work()) == 1
