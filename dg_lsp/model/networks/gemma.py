"""DiffusionGemma after the seam for networks: transformers' own class, which reads as well as it denoises."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DiffusionGemmaForBlockDiffusion
from transformers.cache_utils import Cache

from dg_lsp.model.cache import CHUNK
from dg_lsp.model.denoise import denoise
from dg_lsp.model.networks.base import added
from dg_lsp.model.networks.decoder import capped_logits, soft_cap
from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.step import Schedule, Step


class DiffusionGemma(DiffusionGemmaForBlockDiffusion):
    """A Reader and a Denoiser (networks/base.py): the encoder reads, the decoder denoises."""

    chunk = CHUNK

    @classmethod
    def _can_set_experts_implementation(cls) -> bool:
        # transformers looks for this in the source of the module that a class is defined in.
        able: bool = DiffusionGemmaForBlockDiffusion._can_set_experts_implementation()
        return able

    @property
    def device(self) -> torch.device:
        """The device of the token table, wherever the layers are."""
        return torch.device(self.model.decoder.embed_tokens.weight.device)

    @property
    def text_config(self) -> Any:
        """The configuration of its text layers."""
        return self.config.text_config

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:
        """Append the keys and values of `tokens` to the layers of `cache`, all at once."""
        read = torch.tensor([tokens], device=self.device)
        self.model.encoder.language_model(input_ids=read, past_key_values=cache)
        return iter(())

    def read(
        self, cache: Cache, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        """Return the hidden states [tokens, hidden] of `tokens`, and append their keys and values to `cache`."""
        config, dtype = self.text_config, self.model.decoder.embed_tokens.weight.dtype
        windows = {"sliding_attention": config.sliding_window, "full_attention": None}
        by_kind = {kind: added(masks[windows[kind]], dtype) for kind in dict.fromkeys(config.layer_types)}
        read = self.model.encoder.language_model(
            input_ids=tokens[None],
            attention_mask=by_kind,
            position_ids=positions[None],
            past_key_values=cache,
        )
        states: Tensor = read.last_hidden_state[0]
        return states

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the scaled embeddings of `tokens`."""
        embedded: Tensor = self.model.decoder.embed_tokens(tokens)
        return embedded

    def mean_embedding(self, chances: Tensor) -> Tensor:
        """Return the mean of all scaled embeddings, weighted by `chances`."""
        table = self.model.decoder.embed_tokens
        mean: Tensor = (chances @ table.weight) * table.embed_scale.to(table.weight.dtype)
        return mean

    def head(self, states: Tensor) -> Tensor:
        """Return the scores of hidden states before the cap."""
        raw: Tensor = self.lm_head(states)
        return raw

    def cap(self, raw: Tensor) -> Tensor:
        """Return the soft-capped logits in fp32 of what `head` gave."""
        return soft_cap(self, raw)

    def logits(self, states: Tensor) -> Tensor:
        """Return the soft-capped logits in fp32."""
        return capped_logits(self, states)

    def denoise(
        self, cache: Cache, sampler: AnchoredSampler, schedule: Schedule, watch: Tensor | None = None
    ) -> Iterator[Step]:
        """Denoise `sampler.canvas` after `cache` by the loop of model/denoise.py."""
        return denoise(self, cache, sampler, schedule, watch)

    def trial(self, tokens: Tensor) -> Tensor:
        """Return the logits of a whole pass over `tokens` [1, tokens], which are canvas and prefix at once."""
        logits: Tensor = self(input_ids=tokens, decoder_input_ids=tokens).logits
        return logits

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:
        """Save the network under the name of transformers' own class, which other programs know."""
        super().save_pretrained(save_directory, **options)
        self.config.architectures = [DiffusionGemmaForBlockDiffusion.__name__]
        self.config.save_pretrained(save_directory)
