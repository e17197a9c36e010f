"""Fill-in-the-middle: the prompt of each family, texts with both sides in sight, and the laws that hold for them."""

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.cache_utils import Cache

from benchmarks import run_to_end
from dg_lsp.messages import Draft, Effort, Fill, Infill, Kind, Piece, Retrieved
from dg_lsp.model import fill as door
from dg_lsp.model.cache import CHUNK, PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.costs import Costs, measure
from dg_lsp.model.fill import fill, near, read_on, score_candidates, with_time_to_read
from dg_lsp.model.judge import PLAIN, SITUATIONS
from dg_lsp.model.plan import Writing, plan_for
from dg_lsp.model.prompts.fim import _PIECES, FAMILIES, family_of, item_start, near_suffix
from dg_lsp.model.prompts.styles import STYLES, frame_of, style_of
from dg_lsp.model.sources import lines as line_source
from dg_lsp.model.sources.below import UNSURE
from dg_lsp.model.sources.lines import lines_in_sight
from dg_lsp.model.task import read_in_time
from dg_lsp.model.tokens import tokenise
from tests.model.oracle import task_of
from tests.training.test_importing import SHAPE

TOP, ITEM, HEAD = "import os\n\n\n", "def area(r):\n", "    return "
ABOVE = TOP + ITEM
SUFFIX = "\n\n\ndef half(x):\n    return x / 2\n"
REQUEST = Infill(ABOVE + HEAD, SUFFIX, "python", "rest_of_line")
QWEN = FAMILIES["Qwen2.5-Coder, Qwen3-Coder"]


def tokenizer_with(names: Sequence[str], *, special: bool = True) -> Tokenizer:
    """Bytes, merges that take the blank before a word along, and the tokens `names`."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([(ABOVE + HEAD + "r * r" + SUFFIX) * 4], trainer)
    made.add_tokens([AddedToken(name, special=special) for name in names])
    made.encode_special_tokens = True
    return made


def names_of(family: str) -> list[str]:
    found = FAMILIES[family]
    first = ["<bos>"] if found.begins else []
    return list(dict.fromkeys([*first, *found.needed, *found.ends]))


def as_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False))


def save(path: Path, tokenizer: Tokenizer) -> Path:
    """A random causal network with `tokenizer`, as other programs keep it: no file of ours beside it."""
    shape = SHAPE | {"vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 4096}
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True)).save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A random network with the tokens of Qwen2.5-Coder; its judge has no fitted weights."""
    path = save(tmp_path_factory.mktemp("coder"), tokenizer_with(names_of("Qwen2.5-Coder, Qwen3-Coder")))
    loaded = load_checkpoint(str(path), "cpu")
    return replace(loaded, judge=PLAIN, network=loaded.network.double())


PROMPTS = {
    "Qwen2.5-Coder, Qwen3-Coder": "<|fim_prefix|>{above}<|fim_suffix|>{suffix}<|fim_middle|>{head}",
    "CodeGemma": "<bos><|fim_prefix|>{above}<|fim_suffix|>{suffix}<|fim_middle|>{head}",
    "Granite 4": "<|fim_prefix|>{above}<|fim_suffix|>{suffix}<|fim_middle|>{head}",
    "StarCoder2": "<fim_prefix>{above}<fim_suffix>{suffix}<fim_middle>{head}",
    "StarCoder, Granite": "<fim_prefix>{above}<fim_suffix>{suffix}<fim_middle>{head}",
    "DeepSeek-Coder": "<bos><｜fim▁begin｜>{above}<｜fim▁hole｜>{suffix}<｜fim▁end｜>{head}",
    "Codestral": "<bos>[SUFFIX]{suffix}[PREFIX]{above}{head}",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_of_each_family_is_found_by_its_tokens(family: str) -> None:
    tokenizer = tokenizer_with(names_of(family))
    assert family_of(tokenizer) == FAMILIES[family] and style_of(tokenizer) == "fim"
    bos = tokenizer.token_to_id("<bos>") or 0
    frame = frame_of(tokenizer, "fim", bos, REQUEST)
    above, head = REQUEST.prefix[: frame.cut], REQUEST.prefix[frame.cut :]
    parts = [*frame.before, *tokenizer.encode(above).ids, *frame.between, *tokenizer.encode(head).ids]
    assert as_text(tokenizer, parts) == PROMPTS[family].format(above=TOP, head=ITEM + HEAD, suffix=SUFFIX)


def test_a_tokenizer_without_such_tokens_belongs_to_no_family() -> None:
    assert family_of(tokenizer_with(["<|fim_prefix|>", "<|fim_suffix|>"])) is None
    assert style_of(tokenizer_with(["<|endoftext|>"])) == "raw"


@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_of_other_files_come_before_the_item_of_the_gap(family: str) -> None:
    tokenizer = tokenizer_with(names_of(family))
    pieces = (Piece("a.py", "def g(b): ...\n"), Piece("x\ny.py", FAMILIES[family].prefix))
    bos = tokenizer.token_to_id("<bos>") or 0
    frame = frame_of(tokenizer, "fim", bos, replace(REQUEST, context=pieces))
    ids = [*frame.before, *tokenizer.encode(ABOVE[: frame.cut]).ids, *frame.between]
    own = f"# a.py\ndef g(b): ...\n\n# x y.py\n{FAMILIES[family].prefix}\n\n"
    above = TOP + own if FAMILIES[family].middle else own
    assert as_text(tokenizer, ids) == PROMPTS[family].format(above=above, head="", suffix=SUFFIX)
    special = tokenizer.token_to_id(FAMILIES[family].prefix)
    assert sum(token == special for token in ids) == 1, "what a file says is text"


def test_pieces_of_other_files_take_bounded_room_and_repeat_nothing_in_sight() -> None:
    tokenizer = tokenizer_with(names_of("Qwen2.5-Coder, Qwen3-Coder"))
    pieces = tuple(Piece(f"{n:02}.py", f"def part_{n:02}(a, b): ...\n" * 3) for n in range(40))
    same = Piece("copy.py", ITEM + HEAD + "r ** 2\n" + SUFFIX)
    half = Piece("half.py", "def half(x):\n    return x // 2\n\n\ndef third(x):\n    return x / 3\n")
    request = replace(REQUEST, context=(half, *pieces, same))
    between = frame_of(tokenizer, "fim", 0, request).between
    sent = between[: between.index(tokenizer.token_to_id(QWEN.suffix))]
    kept = re.findall(r"# (\d+)\.py", as_text(tokenizer, sent))
    assert len(sent) <= _PIECES and "copy.py" not in as_text(tokenizer, sent)
    assert 2 <= len(kept) < 40 and kept == [f"{n:02}" for n in range(40 - len(kept), 40)], (
        "the last ones stay"
    )
    alone = frame_of(tokenizer, "fim", 0, replace(request, context=(half,))).between
    assert "third" in as_text(tokenizer, alone), "a quarter of its lines is in sight"


def test_the_pieces_of_other_files_stay_while_one_types_in_a_line() -> None:
    tokenizer = tokenizer_with(names_of("Qwen2.5-Coder, Qwen3-Coder"))
    request = replace(REQUEST, context=(Piece("a.py", "    return r * r\n"), Piece("b.py", "b = 2\n")))
    frames = {
        frame_of(tokenizer, "fim", 0, replace(request, prefix=REQUEST.prefix + "r * r"[:count], suffix=end))
        for count in range(6)
        for end in (SUFFIX, ")" + SUFFIX)
    }
    suffix = tokenizer.token_to_id(QWEN.suffix)
    assert len({frame.between[: frame.between.index(suffix)] for frame in frames}) == 1


@pytest.mark.parametrize(
    ("suffix", "seen"),
    [
        ("", ""),
        (")\n", ")\n"),
        ("\n" + "x = 1\n" * 200, "\n" + "x = 1\n" * 116),
        ("x" * 900, "x" * 700),
        ("\r\n" * 400, "\r\n" * 350),
    ],
)
def test_the_suffix_in_sight_is_bounded_in_whole_lines(suffix: str, seen: str) -> None:
    assert near_suffix(suffix) == seen


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("", ""),
        ("x = 1\ny", "x = 1\ny"),
        (TOP + ITEM + HEAD, ITEM + HEAD),
        (TOP + ITEM + HEAD + "r\n\n\n@a\ndef b():\n    x", "@a\ndef b():\n    x"),
        (TOP + ITEM + HEAD + "r\n\n\nx = ", ITEM + HEAD + "r\n\n\nx = "),
        (
            "import os\r\n \r\nclass A {\r\n\r\n  int x;\r\n\r\n}\r\n",
            "class A {\r\n\r\n  int x;\r\n\r\n}\r\n",
        ),
    ],
)
def test_the_middle_begins_with_the_item_that_the_gap_is_in(prefix: str, begins: str) -> None:
    assert prefix[item_start(prefix) :] == begins


def test_the_middle_of_a_span_begins_with_its_line() -> None:
    tokenizer = tokenizer_with(names_of("Qwen2.5-Coder, Qwen3-Coder"))
    for head in ("", "    ", "    x = "):
        span = replace(REQUEST, prefix=f"{TOP}{ITEM}\n{head}", kind="span")
        assert span.prefix[frame_of(tokenizer, "fim", 0, span).cut :] == head


@pytest.mark.parametrize("effort", get_args(Effort))
def test_bodies_in_view_of_both_sides_are_fewer_and_longer(model: Checkpoint, effort: Effort) -> None:
    body = replace(REQUEST, kind="function_body", effort=effort)
    seen, unseen = plan_for(body, model).drafts, plan_for(body).drafts
    assert (seen.rows, seen.tokens) == (max(unseen.rows // 2, 2), 2 * unseen.tokens)


def test_more_texts_of_a_line_are_written_where_several_are_wanted(model: Checkpoint) -> None:
    rows = [plan_for(replace(REQUEST, alternatives=n), model).drafts.rows for n in (1, 3)]
    assert rows == [2, 4]


def test_in_view_of_both_sides_the_clock_ends_the_drafts_not_their_number_of_tokens(
    model: Checkpoint,
) -> None:
    slow = replace(model, costs=Costs(0.15, 0.45, 2.5))
    for request in (REQUEST, replace(REQUEST, kind="function_body")):
        usual = plan_for(request, model).drafts
        assert plan_for(replace(request, deadline=2.0), slow).drafts == replace(usual, rows=1)
        assert plan_for(replace(request, deadline=600.0), slow).drafts == usual


@pytest.mark.parametrize("context", [(), (Piece("a.py", "def g(b): ...\n"), Piece("b.py", "b = 2\n"))])
def test_all_before_the_item_stays_while_one_types_in_it(
    model: Checkpoint, context: tuple[Piece, ...]
) -> None:
    request = replace(REQUEST, context=context)
    first = tokenise(model, request)[0]
    for typed in ("r", "r *", "r * r", "r * r\n", "r * r\n\n    x = (", "r * r\n\n    x = (\n)\n    y"):
        tokens, seam = tokenise(model, replace(request, prefix=REQUEST.prefix + typed))
        middle = tokens.index(model.tokenizer.token_to_id("<|fim_middle|>")) + 1
        assert tokens[:middle] == first[:middle]
        assert as_text(model.tokenizer, [*tokens, *seam.head]).endswith(f"<|fim_middle|>{ITEM}{HEAD}{typed}")


def test_the_items_above_stay_where_a_piece_changes(model: Checkpoint) -> None:
    texts = ("def g(b): ...\n", "def h(c, d): ...\n")
    one, other = (tokenise(model, replace(REQUEST, context=(Piece("a.py", text),)))[0] for text in texts)
    kept = len(model.encode(TOP)) + 1
    assert one != other and one[:kept] == other[:kept] == (one[0], *model.encode(TOP))


def test_special_tokens_in_a_file_are_text_and_none_comes_out(tmp_path: Path) -> None:
    """Also where the tokenizer does not call them special, as that of DeepSeek-Coder does not."""
    names = names_of("DeepSeek-Coder")
    path = save(tmp_path, tokenizer_with(names, special=False))
    found = load_checkpoint(str(path), "cpu")
    assert found.style == "fim" and len(found.ends) == 2
    text = "".join(names)
    request = replace(REQUEST, prefix=f"x = '{text}'\ny = ", suffix=f"\nz = '{text}'\n")
    tokens, seam = tokenise(found, request)
    ours = [t for t in (*tokens, *seam.head) if t in found.special]
    assert tokens[0] == found.bos
    assert ours == [found.tokenizer.token_to_id(name) for name in FAMILIES["DeepSeek-Coder"].needed]
    assert as_text(found.tokenizer, tokens).count("<｜fim▁hole｜>") == 3
    cache = PrefixCache(found.network.text_config)
    candidates, _ = written(found, request, cache)
    assert candidates and not any(found.special & {*found.encode(text)} for text in candidates)


def written(model: Checkpoint, request: Infill, cache: PrefixCache) -> tuple[dict[str, Any], Any]:
    """The candidates that are written for `request`, by text, and the task."""
    task = task_of(model, request, cache)
    _, found = run_to_end(lines_in_sight(task))
    return {one.text: one for one in found}, task


def write_all(monkeypatch: pytest.MonkeyPatch, drafts: Writing) -> None:
    """Have as many texts written as `drafts` allows, however unlikely they are."""
    plan = replace(plan_for(REQUEST), drafts=drafts)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: plan)
    monkeypatch.setattr(line_source, "_AFTER", 1e9)
    monkeypatch.setattr(line_source._UpToSuffix, "is_enough", lambda *_: False)


def ends_of(model: Checkpoint) -> list[int]:
    """The tokens that end a rest of a line: those of the network, and those that begin with a line end."""
    breaks = [t for t, text in enumerate(model.texts) if text.startswith("\n")]
    return [*model.ends, *breaks]


@torch.inference_mode()
def nats_of(model: Checkpoint, known: Sequence[int], text: Sequence[int]) -> tuple[float, float]:
    """-log p of the tokens `text` after `known`, and of their end, by a whole pass."""
    logits = model.network.network(torch.tensor([[*known, *text]])).logits[0].float().log_softmax(-1)
    gap = -sum(float(logits[len(known) - 1 + n, token]) for n, token in enumerate(text))
    return gap, -float(logits[-1, ends_of(model)].logsumexp(0))


def test_a_texts_likelihood_is_that_of_its_tokens_and_of_its_end(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(monkeypatch, Writing(3, 3))
    request = replace(REQUEST, prefix=ABOVE + HEAD + "r*", retrieved=(Retrieved("r+os/2"), Retrieved("x")))
    cache = PrefixCache(model.network.text_config)
    found, _ = written(model, request, cache)
    prefix, seam = tokenise(model, request)
    known = [*prefix, *seam.head]
    assert {"x"} <= {*found}, "a retrieved text goes on, however many are likelier"
    assert found["x"].sources["retrieved"] == 1 and "drafted" in found["x"].sources
    for text, one in found.items():
        tokens = model.encode(text)
        if model.encode("r*" + text) == (*model.encode("r*"), *tokens) and len(tokens) == one.tokens:
            gap, end = nats_of(model, known, tokens)
            assert (one.gap, one.suffix) == (pytest.approx(gap, abs=1e-3), pytest.approx(end, abs=0.3))
            # Other tokens of the same text make it likelier, never less likely.
            assert one.gap + one.suffix <= gap + end + 1e-3


class Knowing:
    """A Reader that knows how a text goes on: behind the tokens of `whole` it is sure of the next one.

    It holds the next one of `other` for possible, too. After any other token it ends the gap. encoded: how many tokens
    went into a cache; passes: how often texts after it were read.
    """

    chunk = CHUNK

    def __init__(self, model: Checkpoint) -> None:
        self.text_config, self.device = model.network.text_config, torch.device("cpu")
        self.size, self.end = model.vocabulary, model.ends[0]
        self.encoded = self.passes = 0
        self.whole: tuple[int, ...] = ()
        self.other: tuple[int, ...] = ()

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:
        self.encoded += len(tokens)
        self._append(cache, len(tokens))
        return iter(())

    def read(
        self, cache: Cache, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        assert masks
        self.passes += 1
        self._append(cache, len(tokens))
        pairs = zip(tokens.tolist(), positions.tolist(), strict=True)
        known = [(self._next(self.whole, *pair), self._next(self.other, *pair)) for pair in pairs]
        return torch.tensor(
            [[self.end if one is None else one, -1 if two is None else two] for one, two in known]
        ).float()

    def logits(self, states: Tensor) -> Tensor:
        likely = torch.nn.functional.one_hot(states[:, 0].long(), self.size).float() * 20
        possible = torch.nn.functional.one_hot(states[:, 1].long() + 1, self.size + 1)[:, 1:].float() * 15
        return torch.maximum(likely, possible)

    def _next(self, text: tuple[int, ...], token: int, position: int) -> int | None:
        return text[position + 1] if position + 1 < len(text) and text[position] == token else None

    def _append(self, cache: Cache, count: int) -> None:
        for layer in cache.layers:
            layer.update(torch.zeros(1, 1, count, 1), torch.zeros(1, 1, count, 1))


@pytest.fixture
def knowing(model: Checkpoint) -> Checkpoint:
    """A checkpoint whose network knows what belongs into a gap, once `knows` has told it."""
    return replace(model, network=Knowing(model))


def knows(model: Checkpoint, request: Infill, truth: str, further: str = "") -> None:
    """Tell the network of `model` that `truth` belongs into the gap, and that `further` is likelier than its end."""
    tokens, seam = tokenise(model, request)
    head = as_text(model.tokenizer, seam.head)
    model.network.whole = (*tokens, *model.encode(head + truth + further), model.ends[0])
    model.network.other = (*tokens, *model.encode(head + truth + request.suffix))


def filled(model: Checkpoint, request: Infill, cache: PrefixCache | None = None) -> Fill:
    *_, last = fill(model, cache or PrefixCache(model.network.text_config), request)
    assert isinstance(last, Fill)
    return last


@pytest.mark.parametrize(
    ("head", "truth", "suffix", "kind"),
    [
        (HEAD, "r * r", SUFFIX, "rest_of_line"),
        ("    return half(", "x=r", ")" + SUFFIX, "arguments"),
        ("    return half(", "half(r)", ")" + SUFFIX, "arguments"),
        ("    return half(", "half(", "r))" + SUFFIX, "arguments"),
        ("    return half(", "(r + r) / 2", ")" + SUFFIX, "arguments"),
        ("    x = [", "[r][0]", "]" + SUFFIX, "expression"),
        ("    return half(r, ", "half(r, r)", ", r)" + SUFFIX, "arguments"),
        ("    x = ", "half(r + r)", " + r" + SUFFIX, "expression"),
        ("    x = [ ", "half([ r ])", " ]" + SUFFIX, "expression"),
        ("def f(", "x: int, y: int) -> int", ":" + SUFFIX, "rest_of_line"),
        ("    if ", "r in {x: 1, 2: y}", ":\n        return 1" + SUFFIX, "expression"),
        ("    ", "return half(x)", SUFFIX, "statement"),
        ("", "x = [1, 2]", "\ny = x\n", "statement"),
        ("    ", "return half(\n        x,\n        r,\n    )", SUFFIX, "statement"),
        ("    ", "if r:\n        return x", SUFFIX, "statement"),
        ("    ", "x = half(r)\n    y = half(x)", SUFFIX, "span"),
        # No syntax shows that the text ends here, nor that it does not end before.
        ("    ", "if r:\n        return x\n    if x:", "\n        return r" + SUFFIX, "span"),
        ("    ", "x = r\n    x = r\n    x = r\n    half(r)", SUFFIX, "span"),
        ("    # ", "half of r is r / 2", "\n    return r\n", "comment"),
        ("    ", "x = r / 2\n    return half(x)", SUFFIX, "function_body"),
        ('    """', "Return the area.", '"""\n    return r * r\n', "docstring"),
    ],
)
def test_what_the_network_knows_is_filled_in(
    knowing: Checkpoint, head: str, truth: str, suffix: str, kind: Kind
) -> None:
    request = Infill(ABOVE + head, suffix, "python", kind, indent="    ")
    knows(knowing, request, truth)
    found = filled(knowing, request)
    assert (found.text.strip(), found.refusal) == (truth, "")


@pytest.mark.parametrize(
    ("suffix", "whole"),
    [
        ("\n    return r" + SUFFIX, False),
        ("\n    else:\n        return r" + SUFFIX, False),
        # Nothing that belongs to the function is below, so nothing shows that the text ends sooner.
        (SUFFIX, True),
        ("\n", True),
        ("", True),
    ],
)
def test_a_span_ends_where_the_text_below_it_follows(
    knowing: Checkpoint, suffix: str, *, whole: bool
) -> None:
    truth, further = "if r:\n        half(x)\n        half(r)", "\n        x = r\n    half(os)"
    request = Infill(ABOVE + "    ", suffix, "python", "span", indent="    ")
    knows(knowing, request, truth, further)
    found = filled(knowing, request)
    assert (found.text, found.refusal, found.shortened) == (truth + further * whole, "", False)


@pytest.mark.parametrize("suffix", ["\n    y = half(r)\n    return y" + SUFFIX, "\n    return half(r)\n"])
def test_a_span_that_is_written_past_its_end_is_written_no_further(knowing: Checkpoint, suffix: str) -> None:
    request = Infill(ABOVE + "    ", suffix, "python", "span", indent="    ")
    for further in (
        suffix + "    z = half(x) + half(r)\n" * 20,
        "\n    x = r" * 40,
        "\n\ndef g(x):" + "\n    half(x)" * 9,
    ):
        knows(knowing, request, "x = half(r)", further)
        knowing.network.passes = 0
        assert filled(knowing, request).text == "x = half(r)"
        assert 0 < knowing.network.passes < 110, "of more than 150 tokens"


def test_a_single_row_of_a_body_is_written_once(knowing: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Infill(ABOVE + "    ", SUFFIX, "python", "function_body", indent="    ")
    truth = "x = r / 2\n    return half(x)"
    knows(knowing, request, truth)
    plan = replace(plan_for(request, knowing), drafts=Writing(1, 60))
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: plan)
    *drafts, last = fill(knowing, PrefixCache(knowing.network.text_config), request)
    assert isinstance(last, Fill) and last.text == truth
    passes = sum(isinstance(event, Draft) and not event.pause for event in drafts)
    assert passes <= len(knowing.encode(truth)) + 2


def test_the_blank_before_the_gap_belongs_to_its_first_token(knowing: Checkpoint) -> None:
    """`return ` and `r`: the network was trained on the token ` r`, which it cannot write after a blank."""
    request = REQUEST
    tokens, seam = tokenise(knowing, request)
    whole = (*tokens, *knowing.encode(as_text(knowing.tokenizer, seam.head) + "r * r"))
    blank = knowing.encode("return ")[-1:]
    assert whole[len(tokens) : len(tokens) + len(seam.head)] != seam.head and seam.head[-1:] == blank
    knows(knowing, request, "r * r")
    assert filled(knowing, request).text == "r * r"


def test_a_statement_begins_with_the_name_that_nothing_defines(model: Checkpoint) -> None:
    def first(suffix: str) -> str:
        request = Infill(ABOVE + "    ", suffix + SUFFIX, "python", "statement")
        return next(iter(written(model, request, PrefixCache(model.network.text_config))[0]))

    assert first("\n    return half(side)").startswith("side")
    assert not first("\n    return half(r)").startswith("side")


def test_a_key_costs_the_tokens_that_it_changes(knowing: Checkpoint) -> None:
    """Also one that begins a new line. Not within words, since this network knows no half words."""
    cache, typed = PrefixCache(knowing.network.text_config), "r * r + half(r)\n    return half(r + 2)"
    costs = list[int]()
    for count in range(len(typed)):
        done, wanted = typed[:count], typed[count:].partition("\n")[0]
        begun = done.rpartition("\n")[2]
        if (
            not wanted
            or ("\n" in done and len(begun) < 4)
            or (f"{begun[-1:]}x{wanted[0]}".isalpha() and begun)
        ):
            continue
        request = replace(REQUEST, prefix=REQUEST.prefix + done, deadline=60.0)
        knows(knowing, request, wanted)
        before = knowing.network.encoded
        assert filled(knowing, request, cache).text.strip() == wanted.strip()
        costs.append(knowing.network.encoded - before)
    assert costs[0] > 20 and max(costs[1:]) <= 6 and sum(costs[1:]) <= len(typed)


def test_what_stands_in_the_file_already_takes_fewer_passes(
    knowing: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, fills = list[int](), list[Fill]()
    request = replace(REQUEST, prefix=TOP + "a = min(r, half(r), 2)\n" + ITEM + HEAD)
    knows(knowing, request, "min(r, half(r), 2)")
    real = knowing.network.read

    def counted(cache: Cache, tokens: Tensor, *more: Any) -> Tensor:
        passes[-1] += 1
        assert len(tokens) <= 8
        found: Tensor = real(cache, tokens, *more)
        return found

    monkeypatch.setattr(knowing.network, "read", counted)
    for together in (3, 0):
        monkeypatch.setattr("dg_lsp.model.beam._TOGETHER", together)
        passes.append(0)
        fills.append(replace(filled(knowing, request), milliseconds=0))
    assert fills[0] == fills[1] and fills[0].text == "min(r, half(r), 2)"
    assert passes[0] <= 0.6 * passes[1]


def test_reading_tells_the_places_between_two_layers_from_the_end_of_a_chunk(model: Checkpoint) -> None:
    cache = PrefixCache(model.network.text_config)
    tokens = [5] * (2 * model.network.chunk + 40)
    drafts = list(read_in_time(model, cache, tokens, Clock(60)))
    assert [draft.pause for draft in drafts].count(False) == 3
    assert len(drafts) > 3


def test_the_first_fill_of_a_long_file_sees_the_text_near_the_gap(knowing: Checkpoint) -> None:
    slow = replace(knowing, costs=Costs(0.01, 0.64, 5.0), max_prefix=1024)
    long = replace(REQUEST, prefix=TOP + "x = half(3)\n" * 300 + REQUEST.prefix, suffix=SUFFIX * 20)
    ghost, cache = replace(long, deadline=2.0), PrefixCache(knowing.network.text_config)
    least = near(slow, cache, ghost)
    tokens, seam = tokenise(slow, least)
    assert 100 < len(tokens) + len(seam.head) <= CHUNK
    assert (
        least.prefix.endswith(ITEM + HEAD) and SUFFIX.strip() in least.suffix and least.suffix in long.suffix
    )
    timed = with_time_to_read(slow, cache, least)
    assert timed.deadline is not None and timed.deadline > 2.0 + 1.0
    # Nobody waits, or the network is fast, or nothing is known of it.
    for model, request in (
        (slow, long),
        (replace(slow, costs=Costs(1e-4, 1e-3, 0.01)), ghost),
        (replace(knowing, costs=None), ghost),
    ):
        assert near(model, cache, request) is request
    assert len(list(read_on(slow, cache, ghost))) > 2
    assert near(slow, cache, replace(ghost, prefix=ghost.prefix + "r")).prefix == ghost.prefix + "r"
    assert list(read_on(slow, cache, long)) == []


def test_a_pass_of_many_tokens_is_measured_where_a_token_takes_a_sixth_of_a_second(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, read = [0.0], type(model.network).read
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("time.process_time", lambda: clock[0])

    def slow(network: Any, cache: Cache, tokens: Tensor, *more: Any) -> Any:
        clock[0] += 0.15 if len(tokens) == 1 else 0.45
        return read(network, cache, tokens, *more)

    monkeypatch.setattr(type(model.network), "read", slow)
    found = measure(model.network)
    assert found is not None and (found.token, found.row) == pytest.approx((0.15, 0.45))


def test_the_deadline_counts_from_the_moment_when_what_must_be_read_is_read(knowing: Checkpoint) -> None:
    slow, cache = replace(knowing, costs=Costs(0.01, 0.64, 5.0)), PrefixCache(knowing.network.text_config)
    ghost = replace(REQUEST, prefix=TOP + "x = half(3)\n" * 9 + REQUEST.prefix, deadline=1.0)
    tokens, _ = tokenise(slow, ghost)
    assert slow.costs is not None and 64 < len(tokens) < CHUNK
    assert near(slow, cache, ghost) is ghost, "a text of one chunk is read whole"
    timed = with_time_to_read(slow, cache, ghost)
    assert timed == replace(ghost, deadline=1.0 + slow.costs.seconds(len(tokens)))
    list(read_on(slow, cache, ghost))
    assert with_time_to_read(slow, cache, ghost) is ghost, "all of it is read"
    assert with_time_to_read(slow, PrefixCache(knowing.network.text_config), REQUEST) is REQUEST


def test_the_same_request_gets_the_same_fill_whatever_the_cache_holds(model: Checkpoint) -> None:
    cache = PrefixCache(model.network.text_config)
    requests = [
        replace(REQUEST, prefix=prefix, suffix=suffix)
        for prefix in (ABOVE + HEAD, ABOVE * 12 + HEAD)
        for suffix in (SUFFIX, ")\n")
    ]
    requests.append(
        replace(REQUEST, prefix=ABOVE + "    ", kind="function_body", indent="    ", effort="low")
    )
    fresh = [replace(filled(model, one), milliseconds=0) for one in requests]
    for _ in range(2):
        used = [replace(filled(model, one, cache), milliseconds=0) for one in requests]
        assert used == fresh, "law 4"


@torch.inference_mode()
def test_a_reused_cache_gives_the_likelihoods_of_a_fresh_one(model: Checkpoint) -> None:
    cache, found = PrefixCache(model.network.text_config), list[dict[str, Any]]()
    for typed in ("", "r", "r *", "r", "x"):
        request = replace(REQUEST, prefix=REQUEST.prefix + typed, deadline=60.0)
        found.append(written(model, request, cache)[0])
        fresh, _ = written(model, request, PrefixCache(model.network.text_config))
        assert [*fresh] == [*found[-1]], "law 3"
        for text, one in fresh.items():
            assert one.gap == pytest.approx(found[-1][text].gap, abs=1e-4)


def test_nothing_but_the_gap_changes_and_what_was_typed_stays(knowing: Checkpoint) -> None:
    """Laws 5 and 10: a text that would break the file, or say again what was typed, is not shown."""
    request = Infill(ABOVE + "    x = half(", ")" + SUFFIX, "python", "arguments")
    for bad in ("r))", "r\n", "]"):
        knows(knowing, request, bad)
        text = filled(knowing, request).text
        compile(request.prefix + text + request.suffix, "", "exec")
        assert "\n" not in text and text in ("", "r")


def test_holes_are_filled_one_after_the_other_with_both_sides_in_sight(
    knowing: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    truths, asked = ["r / 2", "x * x"], list[Infill]()
    whole = Infill(ABOVE + "    x = ", SUFFIX, "python", "rest_of_line", between=("\n    return ",))
    real = door.fill

    def told(model: Checkpoint, cache: PrefixCache, request: Infill) -> Iterator[Any]:
        if not request.between:
            knows(model, request, truths[len(asked)])
            asked.append(request)
        return real(model, cache, request)

    monkeypatch.setattr(door, "fill", told)
    *_, found = told(knowing, PrefixCache(knowing.network.text_config), whole)
    assert (found.text, found.further) == ("r / 2", ("x * x",))
    assert asked[0].suffix.startswith("\n    return ") and asked[1].prefix.endswith("x = r / 2\n    return ")


@pytest.mark.parametrize(
    ("truth", "wanted"),
    [
        ("x = [\n        r,\n    ]\n    return x", "x = [\n        r,\n    ]"),
        ("for x in r:\n        half(x)\n        half(r)", "for x in r:\n        half(x)\n        half(r)"),
        (
            "if r:\n        half(x)\n    else:\n        x\n    return x",
            "if r:\n        half(x)\n    else:\n        x",
        ),
        ("x = [\n" + "        r,\n" * 40 + "    ]", ""),
    ],
)
def test_of_several_lines_one_statement_is_offered(knowing: Checkpoint, truth: str, wanted: str) -> None:
    request = Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ")
    knows(knowing, request, truth)
    assert filled(knowing, request).text.strip() == wanted


def test_a_block_is_as_likely_as_its_first_line_where_the_lines_below_it_are_sure(
    knowing: Checkpoint,
) -> None:
    sure = replace(knowing, judge=STYLES["fim"].judge())
    request = Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ", confidence=0.25)
    knows(knowing, request, "if r:\n        return x")
    block = filled(sure, request)
    knows(knowing, request, "return x")
    line = filled(sure, request)
    assert block.text == "if r:\n        return x" and line.text == "return x"
    assert block.chance and line.chance and abs(block.chance - line.chance) < 0.2


def test_lines_below_that_are_too_unlikely_are_not_shown_unasked(
    knowing: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure = replace(knowing, judge=STYLES["fim"].judge())
    request = Infill(ABOVE + "    ", SUFFIX, "python", "statement", indent="    ", confidence=0.25)
    knows(knowing, request, "if r:\n        return x")
    monkeypatch.setattr("dg_lsp.model.sources.below._KEPT", 1e8)
    assert filled(sure, request).text == "" and UNSURE in filled(sure, request).refusal
    asked = replace(request, confidence=0.0)
    assert filled(sure, asked).text == "if r:\n        return x"


def test_a_first_line_that_can_stand_alone_stands_without_unlikely_lines_below(
    knowing: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure = replace(knowing, judge=STYLES["fim"].judge())
    request = Infill(ABOVE + "    if ", SUFFIX, "python", "rest_of_line", indent="    ", confidence=0.25)
    knows(knowing, request, "r:\n        return x")
    assert filled(sure, request).text == "r:\n        return x"
    monkeypatch.setattr("dg_lsp.model.sources.below._KEPT", 1e8)
    assert filled(sure, request).text == "r:"


@pytest.mark.parametrize("endings", [("lf", "nd"), ("nd",), ()], ids=["in sight", "another one", "none"])
@pytest.mark.parametrize("word", ["half", "returned", "r_half_return", "maße", "self"])
def test_a_half_word_is_completed_after_any_of_its_letters(
    knowing: Checkpoint, word: str, endings: tuple[str, ...]
) -> None:
    for typed in range(1, len(word) + 1):
        request = replace(REQUEST, prefix=f"{ABOVE}    x = {word[:typed]}", endings=endings)
        rest = word[typed:] + "(r)"
        knows(knowing, request, rest)
        assert filled(knowing, request).text == rest


def test_half_a_word_is_a_part_of_the_words_of_its_text(knowing: Checkpoint) -> None:
    found = list[float]()
    for half, rest in (("ha", "lf(r)"), ("ho", "lf(r)")):
        request = replace(REQUEST, prefix=f"{ABOVE}    x = {half}", endings=())
        knows(knowing, request, rest)
        task = task_of(knowing, request)
        (one,) = score_candidates(task, run_to_end(lines_in_sight(task))[1])
        found.append(one.unseen)
        # The typed letters are given: the likelihood is that of what follows them.
        assert one.gap + one.suffix == pytest.approx(0, abs=1e-4)
    assert found == [0, 1]


def test_a_rewriting_of_a_selection_is_refused_with_the_reason(knowing: Checkpoint) -> None:
    assert "rewrite a selection" in filled(knowing, replace(REQUEST, kind="span", start="x")).refusal


def test_the_judge_of_the_style_says_how_likely_a_text_is_right(knowing: Checkpoint) -> None:
    knows(knowing, REQUEST, "r * r")
    weights = STYLES["fim"].judge()
    assert weights.keys() == {*SITUATIONS}
    found = filled(replace(knowing, judge=weights), REQUEST)
    assert found.text == "r * r" and found.chance is not None and found.chance > 0.5
    # Of a text that the network is not sure of, less is likely.
    knows(knowing, replace(REQUEST, prefix=ABOVE + "    x"), "r")
    unsure = filled(replace(knowing, judge=weights), REQUEST)
    assert not unsure.text or (unsure.chance or 0) < 0.2


def test_a_checkpoint_may_name_another_style_and_its_own_judge(tmp_path: Path) -> None:
    save(tmp_path, tokenizer_with(names_of("StarCoder2")))
    assert load_checkpoint(str(tmp_path), "cpu").max_prefix == 1024
    (tmp_path / "dg_lsp.json").write_text(json.dumps({"prompt": "raw", "max_prefix_tokens": 64}))
    (tmp_path / "judge.json").write_text(json.dumps(PLAIN))
    found = load_checkpoint(str(tmp_path), "cpu")
    assert (found.style, found.ends, found.max_prefix, found.judge) == ("raw", (), 64, PLAIN)
    assert math.isfinite(filled(found, REQUEST).score)


def test_a_text_with_a_name_that_is_to_be_imported_gains_and_all_others_stay_as_they_are_to_each_other(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(monkeypatch, Writing(3, 6))
    request, known = replace(REQUEST, prefix=TOP + "import r."), []
    texts, gains = dict[str, Any](), set[tuple[bool, float]]()
    for names in ((), ("qs",)):
        texts, task = written(
            model, replace(request, unimported=names), PrefixCache(model.network.text_config)
        )
        known = [*task.tokens[0], *task.tokens[1].head]
        assert any("qs" in re.findall(r"\w+", text) for text in texts) == bool(names)
    for text, one in texts.items():
        tokens = model.encode(text)
        if model.encode("r." + text) == (*model.encode("r."), *tokens) and len(tokens) == one.tokens:
            gap, _ = nats_of(model, known, tokens)
            gains.add(("qs" in re.findall(r"\w+", text), round(gap - one.gap, 2)))
    with_name, without = ({gain for has, gain in gains if has == kind} for kind in (True, False))
    assert len(with_name) == len(without) == 1, "each text gains the same"
    assert with_name.pop() - without.pop() == pytest.approx(8, abs=0.02)


def test_letters_typed_of_such_a_name_change_nothing_of_its_gain(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(monkeypatch, Writing(40, 2))
    request = replace(REQUEST, prefix=TOP + "import r.half", endings=())
    scores = list[dict[str, float]]()
    for names in ((), ("half", "halfway")):
        asked = replace(request, unimported=names)
        texts, _ = written(model, asked, PrefixCache(model.network.text_config))
        scores.append({text: -one.gap - one.suffix for text, one in texts.items()})
    plain, gained = scores
    gains = {text: gained[text] - plain[text] for text in plain.keys() & gained.keys()}
    with_name = [gain for text, gain in gains.items() if re.match(r"[ (.,:]|way\b", text)]
    without = [gain for text, gain in gains.items() if re.match(r"[\w$]", text) and text[0] != "w"]
    assert len(with_name) > 2 and len(without) > 2
    # A text that is written in several ways gains a little less. The names gain, and not the others lose: texts that
    # begin with another token of the typed letters have gained nothing yet.
    assert statistics.median(with_name) > 1
    assert statistics.median(with_name) - statistics.median(without) == pytest.approx(8, abs=0.02)
