"""Repairs and rewriting by a canvas, beside a network that writes from left to right: what is asked, and what stays."""

import random

import pytest
import torch

from benchmarks.denoiser import changes, cuts
from benchmarks.denoiser.spans import Marks, read_prompt
from benchmarks.denoiser.views import Gap
from benchmarks.next_edit import Hunk, Scenario
from dg_lsp.guard import find_break
from tests.benchmarks.test_denoiser import END, changed, gaps, greedy, tiny
from tests.model.gguf_files import VOCABULARY
from tests.model.tiny import byte_tokenizer

MARKS = Marks(5, 6, 7, END)


def test_likelihood_is_that_of_the_text_read_with_its_prompt():
    network, prompt = tiny(), gaps(1)[0].prompt
    text = [9, 20, 31]
    logits = network.network(input_ids=torch.tensor([[*prompt, *text]])).logits[0].log_softmax(1)
    mean = sum(float(logits[len(prompt) - 1 + at, token]) for at, token in enumerate(text)) / len(text)
    assert changes.likelihood(network, read_prompt(network, prompt), text) == pytest.approx(mean, abs=1e-4)


def test_a_token_that_is_doubted_does_not_see_itself():
    network = changed(tiny())
    prompt = read_prompt(network, gaps(1)[0].prompt)
    chances = [changes.doubts(network, prompt, [8, token, 9])[1] for token in range(VOCABULARY)]
    assert sum(chances) == pytest.approx(1, abs=1e-4)


def test_text_that_the_network_would_write_is_followed_to_its_end():
    network, prompt = tiny(), gaps(1)[0].prompt
    truth = greedy(network, prompt, 8)
    assert changes.followed(network, read_prompt(network, prompt), truth, END)[: len(truth)] == truth


def test_old_text_is_taken_up_again_after_two_tokens_of_it():
    assert changes._met([1, 2, 3, 4, 5], 1, [3, 4]) == 4
    assert changes._met([1, 2, 3, 4, 5], 1, [8, 9]) == 1


def test_old_lines_are_those_that_a_scenario_wants_changed_with_its_edits_made():
    text = "a = 1\nb = 2\nc = 3\n"
    scenario = Scenario(
        "",
        {"x.py": text},
        (Hunk("x.py", 1, ("a = 1",), ("a = 1.0",)),),
        None,
        (Hunk("x.py", 0, ("c = 3",), ("c = 3.0",)), Hunk("x.py", 0, (), ("d = 4.0",))),
    )
    (found,) = changes.old_texts([scenario])
    assert found == changes.Old("a = 1.0\nb = 2\n", "\n", "c = 3", "c = 3.0")


def test_broken_texts_add_a_fault_to_a_file_and_are_repaired_by_the_truth():
    tokenizer = byte_tokenizer()
    above, truth, below = "def f(a, b):\n    total = ", "max(a, min(b, 3))", "\n    return total\n"
    before, text, after = (tokenizer.encode(part).ids for part in (above, truth, below))
    one = cuts.Cut(Gap((), (*text, END), whole=True), before, after, "python")
    (case,) = changes.broken_texts([one], tokenizer, random.Random(0))
    assert case.truth == truth != case.text
    assert find_break(case.request, case.text) is not None
    spans = list[tuple[list[int], int, list[int]]]()

    def fill(head, length, tail):
        spans.append((list(head), length, list(tail)))
        return [text]

    assert changes.repaired(case, tokenizer, fill) == truth
    ((head, length, tail),) = spans
    assert (
        tokenizer.decode([*head, *tokenizer.encode(case.text).ids[len(head) :][:length], *tail]) == case.text
    )
    assert changes.repaired(case, tokenizer, lambda *_: []) is None
