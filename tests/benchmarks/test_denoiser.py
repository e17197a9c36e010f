"""The training of a canvas's adapters, with a tiny network."""

import json
import random
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.denoiser import cuts, drafts
from benchmarks.denoiser.network import DELETE, MASK, CanvasLora
from benchmarks.denoiser.training import Plan, Training, train
from benchmarks.denoiser.views import Gap, loss_of, views_of
from tests.model.gguf_files import SHAPE, VOCABULARY
from tests.model.tiny import byte_tokenizer

END = 1


def tiny(seed: int = 0) -> CanvasLora:
    """Return adapters that change nothing, of a random Qwen2 in fp32."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model("qwen2", **SHAPE | {"hidden_size": 64, "intermediate_size": 96})
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 2:
                weight.normal_(0, 0.25)
    return CanvasLora(network, 2, END)


def changed(network: CanvasLora) -> CanvasLora:
    """Return `network` with adapters that change its canvas rows."""
    with torch.no_grad():
        for weight in network.ups.values():
            weight.normal_(0, 0.2)
    return network


def gaps(count: int, seed: int = 0) -> list[Gap]:
    """Return gaps with prompts of 12 random tokens and texts of 2 to 9."""
    chance = random.Random(seed)
    return [
        Gap(
            tuple(chance.randrange(4, VOCABULARY) for _ in range(12)),
            (*(chance.randrange(4, VOCABULARY) for _ in range(chance.randrange(1, 9))), END),
            whole=number % 3 > 0,
        )
        for number in range(count)
    ]


def greedy(network: CanvasLora, prompt: tuple[int, ...], most: int) -> list[int]:
    """Return the text that transformers' own network writes."""
    text = list[int]()
    while len(text) < most and END not in text:
        logits = network.network(input_ids=torch.tensor([[*prompt, *text]])).logits
        text.append(int(logits[0, -1].argmax()))
    return text


def test_written_text_is_the_networks_own_greedy_text_whatever_the_adapters():
    network = changed(tiny())
    prompts = [gap.prompt for gap in gaps(3)]
    _, texts = drafts.write(network, torch.tensor(prompts), END, 10)
    assert texts == [greedy(network, prompt, 10) for prompt in prompts]


def test_one_token_a_step_after_what_is_known_gives_the_greedy_text_with_adapters_at_zero():
    network = tiny()
    prompt = gaps(1)[0].prompt
    truth = greedy(network, prompt, 10)
    read = network.read(torch.tensor([[*prompt, *truth]]))
    # A canvas of one known row sees no mask, and without adapters it is the network's own row.
    for known, token in enumerate(truth[:-1]):
        states = network.look(read, [len(prompt) + known], torch.tensor([[token]]), [0])
        assert int(network.scores(states[0])[0, :-1].argmax()) == truth[known + 1]


def test_canvas_sees_its_own_text_and_no_later_token_of_what_was_read():
    network = changed(tiny())
    first, second = (torch.tensor([[*range(4, 16), *end]]) for end in ((20, 21, 22), (20, 31, 32)))
    canvas = torch.full((1, 6), MASK)
    states = [network.look(network.read(tokens), [13], canvas, [0]) for tokens in (first, second)]
    assert torch.equal(*states)
    one = network.look(network.read(first), [13], torch.tensor([[MASK, MASK, MASK, 9, MASK, MASK]]), [0])
    assert not torch.allclose(one[0, 0], states[0][0, 0])  # a row sees those after it


def test_no_look_changes_what_was_read():
    network = changed(tiny())
    batch = gaps(2)
    read = network.read(torch.tensor([gap.prompt for gap in batch]))
    before = [(key.clone(), value.clone()) for key, value in read.pairs]
    network.look(read, [12, 8], torch.full((2, 32), MASK), [0, 1])
    loss_of(network, batch, 16, random.Random(0)).backward()
    again = network.read(torch.tensor([gap.prompt for gap in batch]))
    for some in (read, again):
        for old, new in zip(before, some.pairs, strict=True):
            assert all(torch.equal(*pair) for pair in zip(old, new, strict=True))
    assert all(weight.grad is None for weight in network.network.parameters())
    assert all(weight.grad is not None for weight in network.parameters())


def test_last_two_views_hide_each_token_once_and_all_begin_where_a_token_is_hidden():
    for gap in gaps(40):
        views = views_of(gap, 16, random.Random(len(gap.text)))
        assert len(views) == 4
        for view in views:
            assert view.canvas[0] == MASK
            for place, token in enumerate(view.canvas, view.known):
                assert token == MASK or token == gap.text[place]
        for view in views[:2]:
            assert set(view.canvas) == {MASK}
        hidden = [
            {
                place
                for place, token in enumerate(view.canvas, view.known)
                if token == MASK and place < len(gap.text)
            }
            for view in views[2:]
        ]
        assert hidden[0] | hidden[1] == set(range(len(gap.text)))
        assert len(gap.text) == 1 or not hidden[0] & hidden[1]


def test_goals_are_the_next_hidden_tokens_and_delete_after_a_whole_text_only():
    whole = Gap((4, 5), (10, 11, END), whole=True)
    part = Gap((4, 5), (10, 11, 12), whole=False)
    first = next(v for seed in range(50) for v in views_of(whole, 5, random.Random(seed))[:1] if v.known == 0)
    assert first.goals == [11, END, DELETE, DELETE, DELETE]
    other = next(v for seed in range(50) for v in views_of(part, 5, random.Random(seed))[:1] if v.known == 1)
    assert other.goals == [12, None, None, None, None]


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_training_lowers_the_loss_and_leaves_the_network_as_it_was(own: float):
    network, some = tiny(), gaps(8)
    weights = [weight.clone() for weight in network.network.parameters()]
    first = float(loss_of(network, some, 8, random.Random(3), own).detach())
    training = Training(network, some, Plan(1000, 3e-3, own))
    for _ in range(40):
        training.advance()
    assert float(loss_of(network, some, 8, random.Random(3), own).detach()) < 0.8 * first
    assert all(torch.equal(*pair) for pair in zip(weights, network.network.parameters(), strict=True))


def test_continued_training_has_the_same_state_as_one_without_a_break(tmp_path: Path):
    some, plan = gaps(10), Plan(40)
    whole = Training(tiny(), some, plan)
    for _ in range(7):
        whole.advance()
    begun = Training(tiny(), some, plan)
    for _ in range(4):
        begun.advance()
    begun.save(tmp_path / "state.safetensors")
    after = Training(tiny(), some, plan)
    after.restore(tmp_path / "state.safetensors")
    for _ in range(3):
        after.advance()
    assert after.step == whole.step == 7
    for one, other in zip(whole.network.parameters(), after.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_train_writes_a_state_and_marked_adapters(tmp_path: Path, monkeypatch):
    training = Training(tiny(), gaps(8), Plan(40))
    turns = iter(range(100))
    monkeypatch.setattr("benchmarks.denoiser.training.time.time", lambda: next(turns))
    train(training, tmp_path, [4, 8], 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "adapter-4.safetensors",
        "adapter-8.safetensors",
        "state.safetensors",
    ]


def test_training_begins_with_stored_adapters_if_there_is_no_state(tmp_path: Path, monkeypatch):
    first, other = (Training(tiny(), gaps(8), Plan(40)) for _ in range(2))
    turns = iter(range(100))
    monkeypatch.setattr("benchmarks.denoiser.training.time.time", lambda: next(turns))
    train(first, tmp_path / "one", [4, 8], 3)
    train(other, tmp_path / "two", [], 0, tmp_path / "one/adapter-8.safetensors")
    assert first.step >= other.step == 2
    stored = load_file(tmp_path / "one/adapter-8.safetensors")
    assert all(torch.equal(weight, stored[name]) for name, weight in other.network.named_parameters())


def test_tokens_that_no_goal_is_may_be_left_out_of_the_vocabulary():
    network, some = changed(tiny()), gaps(6)
    every = network.among(range(VOCABULARY))
    few = network.among({token for gap in some for token in (*gap.prompt, *gap.text)})
    whole, same, part = (
        float(loss_of(network, some, 8, random.Random(3), among=among).detach())
        for among in (None, every, few)
    )
    assert abs(whole - same) < 1e-5 and part < whole


def test_report_counts_rows_that_agree_with_the_own_text(tmp_path: Path):
    network, some = tiny(), gaps(10)
    drafts.prepare(network, some, END, tmp_path / "texts")
    with safe_open(tmp_path / "texts", "pt") as opened:
        texts = json.loads(opened.metadata()["texts"])
    assert texts == [greedy(network, gap.prompt, drafts.MOST) for gap in some]
    found = drafts.report(network, some, tmp_path / "texts", texts, 8)
    assert sum(map(len, found["tokens"])) == len(drafts.places_of(texts))
    mean, low, high = drafts.interval(found["tokens"])
    assert 2 <= low <= mean <= high
    # A draft does not depend on what was read with it.
    places = drafts.places_of(texts)[:3]
    stored = load_file(tmp_path / "texts")
    alone = [drafts.draft(network, stored, 12, [place], 8)[0] for place in places]
    assert alone == drafts.draft(network, stored, 12, places, 8)


def test_copies_follow_the_longest_match():
    assert drafts.copied([1, 2, 3, 9, 2, 3, 4, 1, 2, 3], []) == [9, 2, 3, 4, 1, 2, 3]
    assert drafts.copied([7, 8], [5, 8, 6]) == [6]
    assert drafts.copied([7], []) == []
    assert drafts.accepted([1, 2, 3], [1, 2, 4]) == 2


def test_own_text_ends_with_as_many_lines_as_the_truth():
    assert drafts.until_as_many_lines([5, 6, 9, 7, 9, 8], [4, 3], {9}) == [5, 6, 9]
    assert drafts.until_as_many_lines([5, 6, 9, 7, 9, 8], [4, 9, 3], {9}) == [5, 6, 9, 7, 9]
    assert drafts.until_as_many_lines([5, 6], [4, 9, 3], {9}) == [5, 6]


def test_gaps_are_cut_out_of_files_and_kept(tmp_path: Path):
    lines = [
        f"def name_{n}(first, second):\n    total = first + {n}\n    return total * second\n\n\n"
        for n in range(60)
    ]
    (tmp_path / "code.py").write_text("".join(lines))
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens([*cuts.MARKS, cuts.END])
    found = list(cuts.cut([tmp_path], tokenizer, 8, 0))
    assert found
    for gap, before, after, _ in found:
        assert gap.prompt[1 : 1 + cuts.ABOVE] == tuple(before[-cuts.ABOVE :])
        text = tokenizer.decode([*before, *gap.text, *after]) if gap.whole else ""
        assert not text or text.replace(cuts.END, "") in "".join(lines)
    cuts.save(tmp_path / "gaps", found, files=True)
    assert cuts.load(tmp_path / "gaps") == [one.gap for one in found]
    assert cuts.load_files(tmp_path / "gaps") == found
