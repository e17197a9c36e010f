"""The share of the loading that is done is one of time, by the stages of the last start."""

from pathlib import Path

import pytest

from dg_lsp.serving.loading import Loading

STAGES = (("importing torch", 1.0), ("importing transformers", 3.0), ("checking x", 0.5), ("loading x", 5.5))


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dg-lsp" / "starts.json"


def start(times: float = 1.0, digest: str = "d") -> list[float]:
    """Load once, each stage `times` as long as in STAGES; return the shares after each twentieth of the time."""
    clock, shares = Clock(), list[float]()
    loading, spent = Loading(digest, clock), 0.0
    tick = sum(seconds for _, seconds in STAGES) * times / 20
    for words, seconds in STAGES:
        loading.say(words)
        begin, spent = spent, spent + seconds * times
        for number in range(1, 21):
            if begin < number * tick <= spent:
                clock.now = 100.0 + number * tick
                shares.append(loading.share)
        clock.now = 100.0 + spent
    loading.keep()
    return shares


def test_the_share_moves_as_evenly_as_time_from_the_second_start_on() -> None:
    start()
    shares = start()
    assert shares == pytest.approx([min(number / 20, 0.99) for number in range(1, 21)])


@pytest.mark.parametrize("times", [0.5, 3.0])
def test_a_busier_machine_is_seen_after_the_first_stage(times: float) -> None:
    start()
    shares = start(times)
    # In the first stage, a tenth of the time, nothing is known of it yet.
    assert shares[2:] == pytest.approx([min(number / 20, 0.99) for number in range(3, 21)])


def test_the_first_start_moves_on_and_never_back() -> None:
    shares = start()
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1] <= 0.99
    assert len(set(shares)) > 10


def test_a_wait_for_another_engine_is_not_remembered() -> None:
    clock = Clock()
    loading = Loading("d", clock)
    for words, seconds in (
        ("importing torch", 1.0),
        ("waiting for another engine", 60.0),
        ("loading x", 1.0),
    ):
        loading.say(words)
        clock.now += seconds
    loading.keep()
    again = Loading("d", clock)
    again.say("loading x")
    clock.now += 0.5
    assert again.share > 0.7


@pytest.mark.parametrize(
    "kept", ["", "[]", '{"d": 1}', '{"d": ["x"]}', '{"d": [1, 2]}', '{"d": [1, 2, 3, 4, -1]}']
)
def test_a_damaged_record_counts_for_nothing(kept: str, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(kept)
    assert 0 < start()[0] < 1


def test_each_checkpoint_has_its_own_start_and_few_are_kept(cache: Path) -> None:
    for number in range(40):
        start(digest=str(number))
    assert cache.read_text().count("[") == 32
