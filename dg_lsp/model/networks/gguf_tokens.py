"""The tokenizer that the header of a GGUF file describes, as transformers makes it, with four corrections.

A byte-level vocabulary has control tokens in other letters than those of bytes, such as `<｜fim▁begin｜>`, which
transformers takes for a mistake and spells in bytes. Its classes add tokens that the header does not have. Texts of
StarCoder and DeepSeek-Coder are split in ways that it does not know. And a vocabulary of SentencePiece is used without
the blank that is put before each text, since parts of a text do not begin with one.
"""

import json
import logging
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from dg_lsp.model.networks.gguf_file import GgufFile

_CONTROL, _OWN = 3, 4  # types of tokens: control tokens, and those that users have defined
_BLANK = "\u2581"  # what SentencePiece writes for one
_log = logging.getLogger(__name__)


def _digits() -> Any:
    return pre_tokenizers.Digits(individual_digits=True)


def _around(pattern: str) -> Any:
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


def _bytes(*, split: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split)


_STARCODER = (_digits(), _bytes(split=True))
# How text is split by the name in the header, as `llm_tokenizer_bpe` of llama.cpp's llama-vocab.cpp does it.
_SPLITS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("starcoder", "refact", "smollm", "codeshell", "command-r", "exaone"), _STARCODER),
    "deepseek-coder": (
        _around(r"[\r\n]"),
        _around(r"\s?\p{L}+"),
        _around(r"\s?\p{P}+"),
        _around("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
        _digits(),
        _bytes(split=False),
    ),
}
_DEFAULT = ("default", "gpt-2", "gpt2", "mpt", "olmo")  # which transformers' own class does


def tokenizer_of(opened: GgufFile) -> Tokenizer:
    """The tokenizer that the header of `opened` describes.

    Raises:
        ValueError: transformers knows no such tokenizer.
    """
    fields = opened.fields
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", _DEFAULT[0])
    tokens, types = fields.get("tokenizer.ggml.tokens", ()), fields.get("tokenizer.ggml.token_type") or ()
    letters = {*pre_tokenizers.ByteLevel.alphabet()}
    strange = {
        f"<|token {number}|>".replace(" ", ""): token
        for number, (token, type_) in enumerate(zip(tokens, types, strict=False))
        if kind == "gpt2" and type_ in (_CONTROL, _OWN) and not {*token} <= letters
    }
    made = _by_transformers(opened, {token: name for name, token in strange.items()})
    if strange or made.get_vocab_size() > len(tokens):
        made = _corrected(made, strange, len(tokens))
    if kind == "gpt2" and pre in _SPLITS:
        made.pre_tokenizer = pre_tokenizers.Sequence([*_SPLITS[pre]])
    elif kind == "llama":
        made.normalizer = normalizers.Replace(" ", _BLANK)
        made.pre_tokenizer = None
        made.decoder = decoders.Sequence(
            [
                decoders.Replace(_BLANK, " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
            ]
        )
    return made


def _by_transformers(opened: GgufFile, names: dict[str, str]) -> Tokenizer:
    """The tokenizer that transformers makes of the header of `opened`, with `names` for some of its tokens."""
    try:
        from transformers.integrations.gguf import (  # noqa: PLC0415 - not in every version
            GGUF_TOKENIZER_MAPPING,
            convert_gguf_tokenizer,
        )
        from transformers.integrations.gguf.gguf_tokenizer_mapping import (  # noqa: PLC0415
            GGUF_PRE_TOKENIZER_SPLITS,
        )
    except ImportError:  # reads the header again, which takes seconds
        where: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        found = AutoTokenizer.from_pretrained(str(opened.path.parent), gguf_file=opened.path.name, **where)
        return found.backend_tokenizer
    own = GGUF_TOKENIZER_MAPPING["tokenizer"].items()
    known = {theirs: opened.fields.get(f"tokenizer.{name}") for name, theirs in own}
    given = {name: value for name, value in known.items() if value is not None}
    if names:
        given["tokens"] = [names.get(token, token) for token in given["tokens"]]
    pre = given.get("pre_tokenizer_type", _DEFAULT[0])
    if given.get("tokenizer_type") == "gpt2" and pre not in (*GGUF_PRE_TOKENIZER_SPLITS, *_SPLITS, *_DEFAULT):
        _log.warning(
            "%s: its tokenizer splits text as %s, which is not known; it is split as GPT-2 does",
            opened.path,
            pre,
        )
    tokenizer: Tokenizer = convert_gguf_tokenizer(opened.architecture, given)[0]
    return tokenizer


def _corrected(tokenizer: Tokenizer, names: dict[str, str], count: int) -> Tokenizer:
    """`tokenizer` with other names for some of its added tokens, and without those after the first `count`."""
    parts = json.loads(tokenizer.to_str())
    vocabulary = parts["model"]["vocab"].items()
    parts["model"]["vocab"] = {
        names.get(token, token): number for token, number in vocabulary if number < count
    }
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["id"] < count]
    for token in parts["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    parts["post_processor"] = None  # which would put tokens around each text
    return Tokenizer.from_str(json.dumps(parts))
