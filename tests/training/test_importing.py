"""Import: the made network computes what its source does, whatever the source's shape; what cannot be is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from dg_lsp.cli.main import main
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.networks.decoder import capped_logits
from dg_lsp.training.importing import ImportRefusedError, import_checkpoint, import_network

SHAPE: dict[str, Any] = {
    "vocab_size": 199,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
SOURCES: dict[str, Callable[[], Any]] = {
    "grouped heads, tied": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE, tie_word_embeddings=True)),
    "all heads, untied": lambda: LlamaForCausalLM(
        LlamaConfig(**(SHAPE | {"num_key_value_heads": 4}), tie_word_embeddings=False)
    ),
    "one head of size 24, biases": lambda: LlamaForCausalLM(
        LlamaConfig(
            **(SHAPE | {"num_key_value_heads": 1}), head_dim=24, tie_word_embeddings=True, attention_bias=True
        )
    ),
    "rotary embeddings of Llama 3": lambda: LlamaForCausalLM(
        LlamaConfig(**SHAPE, tie_word_embeddings=True, rope_parameters=LLAMA3)
    ),
    "Qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE, tie_word_embeddings=True)),
    "Mistral, a window": lambda: MistralForCausalLM(
        MistralConfig(**SHAPE, tie_word_embeddings=False, sliding_window=16)
    ),
}


def drawn(make: Callable[[], Any]) -> Any:
    """A source whose attention, biases and norms matter."""
    torch.manual_seed(0)
    source = make().eval()
    with torch.no_grad():
        for name, weight in source.named_parameters():
            if weight.ndim == 2:
                weight.mul_(4)
            else:
                weight.copy_(torch.randn_like(weight) * (0.3 if "norm" in name else 1) + ("norm" in name))
        source.model.embed_tokens.weight.mul_(3)
    return source


def read(network: Any, ids: torch.Tensor) -> tuple[torch.Tensor, DynamicCache]:
    """The logits of the encoder, and what it has cached."""
    cache = DynamicCache(config=network.config.get_text_config())
    states = network.model.encoder.language_model(input_ids=ids, past_key_values=cache).last_hidden_state
    return capped_logits(network, states), cache


@pytest.mark.parametrize("name", SOURCES)
@torch.no_grad()
def test_the_encoder_and_a_canvas_of_one_slot_give_the_logits_of_the_source(name: str) -> None:
    source = drawn(SOURCES[name])
    network = import_network(source)
    ids = torch.randint(3, 199, (2, 40))
    wanted = source(ids).logits
    scale = wanted.abs().max()
    found, _ = read(network, ids)
    assert float((found - wanted).abs().max() / scale) < 1e-4
    # A canvas of one slot after 39 tokens sees what the source sees at the 40th.
    _, cache = read(network, ids[:, :39])
    slot = network(decoder_input_ids=ids[:, 39:], past_key_values=cache).logits[:, 0]
    assert float((slot - wanted[:, 39]).abs().max() / scale) < 1e-4
    # In bf16 it is about as far off as the source itself.
    ours = (read(network.to(torch.bfloat16), ids)[0] - wanted).abs().mean()
    theirs = (source.to(torch.bfloat16)(ids).logits.float() - wanted).abs().mean()
    assert float(ours) < 1.25 * float(theirs)


@pytest.mark.parametrize(
    "change, why",
    [
        ({"mlp_bias": True}, "biases in the dense part"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "rotary embeddings of the type 'dynamic'",
        ),
    ],
)
def test_what_could_not_be_computed_exactly_is_refused_by_name(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ImportRefusedError, match=why):
        import_network(LlamaForCausalLM(LlamaConfig(**SHAPE, **change)))


def tokenizer() -> Tokenizer:
    """A tokenizer of bytes whose tokens cross line ends."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    text = ["def f(x):\n    return x\n\n\n    y = g(x)\n"] * 9
    special = ["<|endoftext|>", "<fim_middle>"]
    made.train_from_iterator(
        text, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=special)
    )
    return made


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama")
    shape = SHAPE | {"vocab_size": 320}
    torch.manual_seed(1)
    LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True, eos_token_id=0)).save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer()).save_pretrained(path)
    return path


def test_an_imported_checkpoint_loads_and_fills_without_denoising(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"
    assert main(["import", str(directory), "--out", str(out), "--licence", "none"]) == 0
    assert str(out) in capsys.readouterr().out
    assert "licence: none" in (out / "README.md").read_text()
    model = load_checkpoint(str(out), "cpu")
    assert not model.denoises and model.style == "raw" and len(model.special) == 2
    for kind, prefix in (("rest_of_line", "def f(x):\n    return "), ("function_body", "def f(x):\n    ")):
        request = Infill(prefix, "\n\n\ny = 1\n", "python", kind, indent="    ")  # type: ignore[arg-type]
        *_, fill = infill(model, PrefixCache(model.network.config.text_config), request)
        assert isinstance(fill, Fill)
        # Random weights may write nothing that can be shown, which is said.
        assert fill.source == "drafted" if fill.text else fill.refusal
        assert not any(name in fill.text for name in ("<|endoftext|>", "<fim_middle>"))
    # A checkpoint is never written over another one.
    assert main(["import", str(directory), "--out", str(out)]) == 2


def test_a_source_of_another_family_or_none_is_refused(tmp_path: Path, directory: Path) -> None:
    with pytest.raises(ImportRefusedError, match="is not here"):
        import_checkpoint(str(tmp_path / "nowhere"), tmp_path / "out")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ImportRefusedError, match="'gpt2'"):
        import_checkpoint(str(tmp_path), tmp_path / "out")
    # A tokenizer that changes blanks would change the file.
    other = tmp_path / "other"
    other.mkdir()
    for file in directory.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    made = tokenizer()
    made.decoder = decoders.ByteLevel()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel()]
    )
    PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(other)
    with pytest.raises(ImportRefusedError, match="changes text"):
        import_checkpoint(str(other), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "data"),
    [("model.safetensors", None), ("model.safetensors", b"\xff" * 99), ("net.gguf", b"GGUF\3\0\0\0")],
)
def test_a_damaged_source_is_refused_in_one_sentence(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes | None
) -> None:
    for file in directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2] if data is None else data)
    source = tmp_path / name if name.endswith("gguf") else tmp_path
    assert main(["import", str(source), "--out", str(tmp_path / "made")]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(f"dg-lsp: error: {source} cannot be read (") and "get it again" in said
    assert not (tmp_path / "made").exists()
