"""The embedded tokenizer: byte-level BPE whose tokens never cross a line end. Knows text; knows no networks.

Each line end is a token of its own, so the tokens of a file are the tokens of its lines one after another, and a cut at
a line start changes no token.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SIZE = 4096

# With the control characters, a file that contains the text "<eos>" does not contain the token.
SPECIAL = ("\x02<pad>\x03", "\x02<eos>\x03", "\x02<bos>\x03", "\x02<unk>\x03")

# The pieces that no token crosses. The first alternative that matches is taken.
_PIECES = "|".join(
    (
        r"\r|\n",  # each line end alone
        r"[ \t]{2,}|\t",  # indentation and alignment, whole runs
        r" ?_*(?:\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{L})\p{M}*",  # a word of a name: snake_case and CamelCase split
        r" ?\p{N}{1,3}",  # digits in short groups
        r" ?_+",
        r" ?[^\s\p{L}\p{N}_]+",  # operators and brackets
        r"\s",
    )
)


def train_tokenizer(texts: Iterable[str], size: int = SIZE) -> Tokenizer:
    """A tokenizer of `size` tokens, trained on `texts` by byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909).

    The ids 0 to 3 are pad, eos, bos and an unused one; then come the 256 bytes, so that every text can be encoded, and
    then the merges.
    """
    assert size >= len(SPECIAL) + 256
    tokenizer = Tokenizer(models.BPE())
    # Without a normaliser and a post-processor, decoding gives back exactly the encoded text.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
