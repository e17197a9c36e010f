"""The other engines that run this network: transformers' own `generate`, and diffusers' pipeline where it is installed.

Knows their options, and how each says that a step is done; knows no table and nothing of our engine but its schedule.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import DynamicCache
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from benchmarks.race.laps import Course, Lap, Rival, Watch, device_of
from dg_lsp.model.denoise import Schedule

_NOWHERE = 10**6  # an id that no vocabulary reaches, so that nothing ends or pads a canvas


def find_rivals(network: Any) -> dict[str, Rival]:
    """The other engines that are installed, by name."""
    rivals: dict[str, Rival] = {"generate": partial(run_generate, network)}
    pipeline = open_pipeline(network)
    return rivals if pipeline is None else {**rivals, "diffusers": partial(run_diffusers, pipeline)}


def run_generate(network: Any, tokens: Sequence[int], course: Course) -> Lap:
    """`model.generate` of transformers, on one canvas of which every slot is free: it knows no anchors."""
    like = Schedule()
    config = DiffusionGemmaGenerationConfig(
        max_new_tokens=course.canvas,
        max_denoising_steps=course.steps,
        sampler_config=EntropyBoundSamplerConfig(like.entropy_bound),
        t_min=like.t_min,
        t_max=like.t_max,
        # As many equal steps in a row as there are steps cannot be behind the last one.
        stability_threshold=course.steps,
        confidence_threshold=like.confidence,
        eos_token_id=_NOWHERE,
        pad_token_id=_NOWHERE,
    )
    prompt = torch.tensor([tokens], device=device_of(network))
    torch.manual_seed(0)
    with _canvas_of(network, course.canvas):
        watch = Watch(prompt.device)
        network.generate(
            input_ids=prompt,
            past_key_values=DynamicCache(config=network.config.text_config),
            generation_config=config,
            streamer=watch,
        )
    return watch.lap()


def open_pipeline(network: Any) -> Any | None:
    """diffusers' pipeline round `network`; None where diffusers is not installed, or too old to have it."""
    try:
        from diffusers import DiffusionGemmaPipeline, EntropyBoundScheduler  # noqa: PLC0415  (optional)
    except ImportError:
        return None
    like = Schedule()
    scheduler = EntropyBoundScheduler(like.entropy_bound, like.t_max, like.t_min)
    pipeline: Any = DiffusionGemmaPipeline(network, scheduler, _Tokens())
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def run_diffusers(pipeline: Any, tokens: Sequence[int], course: Course) -> Lap:
    """diffusers' pipeline, on one canvas of which every slot is free."""
    prompt = torch.tensor([tokens])
    torch.manual_seed(0)
    with _canvas_of(pipeline.model, course.canvas):
        watch = Watch(device_of(pipeline.model))

        def tick(*_: Any) -> dict[str, Any]:
            watch.tick()
            return {}

        pipeline(
            messages=prompt,
            gen_length=course.canvas,
            num_inference_steps=course.steps,
            eos_early_stop=False,
            confidence_threshold=None,
            output_type="seq",
            callback_on_step_end=tick,
        )
    return watch.lap()


class _Tokens:
    """Stands where diffusers wants a processor: the conversation is a tensor of tokens already."""

    def apply_chat_template(self, messages: Any, **_: Any) -> dict[str, Any]:
        """What a processor makes of a conversation."""
        return {"input_ids": messages}


@contextmanager
def _canvas_of(network: Any, length: int) -> Iterator[None]:
    """`network` with another canvas length: the other engines read it from the config only."""
    usual = network.config.canvas_length
    network.config.canvas_length = length
    try:
        yield
    finally:
        network.config.canvas_length = usual
