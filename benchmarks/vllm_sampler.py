"""The engine for vLLM servers on vLLM's own sampler, by hand: the embedded network on a CPU, without a server.

    TORCHDYNAMO_DISABLE=1 python -m benchmarks.vllm_sampler --cases 40

Needs vLLM (0.33) in the same environment, whose request states and sampling step are called as they are; its network,
its scheduler and its HTTP are not. Beside it stand the fills of our own denoiser with the same weights.
"""

import argparse
import asyncio
import time
from collections import Counter
from typing import Any

import torch

from dg_lsp.bench import lists
from dg_lsp.bench.measure import score_of
from dg_lsp.engine.completions import Answer, Asked, Served
from dg_lsp.engine.vllm import VllmEngine
from dg_lsp.filling.fill import finish
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.networks.decoder import capped_logits, hidden_states
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.steps import Clock, run_to_end
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Fill, Infill
from dg_lsp.text.prompts import prompt

KINDS = ("rest_of_line", "expression", "statement", "function_body")


class Sampled:
    """Stands for a server. requests, steps: so far. agreed: of each answer, the share of pins that it wrote, too."""

    def __init__(self, model: Checkpoint) -> None:
        self._model, self._cache = model, PrefixCache(model.network.config.text_config)
        self.requests = self.steps = 0
        self.agreed: list[float] = []

    async def connect(self, *_: Any) -> Served:
        """It is always there."""
        return Served("0.33.0", self._model.name, 1 << 20)

    @torch.inference_mode()
    async def denoised(self, asked: Asked, name: str) -> Answer:
        """The canvas `asked`, denoised by vLLM's step until it is emitted; there is one model, whatever its `name`."""
        assert name == self._model.name
        from vllm.model_executor.models import diffusion_gemma as own  # noqa: PLC0415
        from vllm.model_executor.models.diffusion_gemma_sampler import (  # noqa: PLC0415
            sample_row_stats_reference,
        )

        model, network, plan = self._model, self._model.network, self._model.schedule
        table, width = network.model.decoder.embed_tokens, len(asked.row)
        for _ in extend_to(network, self._cache, asked.prompt, exact=True):
            pass
        state = own.DiffusionGemmaRequestStates(
            *(1, width, model.vocabulary, plan.steps, torch.device("cpu"), table.weight.shape[1]),
            plan.stability + 1,
        )
        # As its `add_request` does, which needs a GPU.
        state.canvas[0] = state.seed_canvas[0] = torch.tensor(asked.row)
        state.pin_mask[0, list(asked.pinned)] = state.read_only[0] = True
        state.max_steps[0] = min(asked.steps, plan.steps)
        slot, count = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)
        written, drafts = torch.zeros(1, width, dtype=torch.int32), torch.zeros(1, width, dtype=torch.int64)
        logits = torch.empty(0)
        while not int(count):
            soft = state.self_conditioning_embeds.to(table.weight.dtype)
            logits = capped_logits(
                network, hidden_states(network, self._cache.seen_by(1), state.canvas, soft)
            )[0]
            heat = own._denoise_temperature(state.step, slot, float(plan.steps), plan.t_min, plan.t_max)
            best, drawn, entropy, chance = sample_row_stats_reference(logits, heat, width, table.weight.dtype)
            own._compiled_sample_step(
                *(
                    drawn.view(1, width),
                    best.view(1, width),
                    entropy.view(1, width),
                    chance.view(1, width, -1),
                ),
                *(slot, slot, slot, torch.tensor([width])),
                *(state.canvas, state.argmax_canvas, state.step, state.is_encoder_phase, state.confident),
                *(state.self_conditioning_embeds, table.weight),
                torch.as_tensor(table.embed_scale).to(table.weight.dtype),
                *(state.accepted_canvas_history, state.accepted_canvas_history_len, state.max_steps),
                *(state.pin_mask, state.seed_canvas, state.read_only, written, count, drafts),
                confidence_threshold=plan.confidence,
                vocab_size=model.vocabulary,
                CL=width,
                ST=plan.stability + 1,
                entropy_bound=plan.entropy_bound,
                sc_vocab_start=0,
                sc_vocab_end=model.vocabulary,
                tp_size=1,
                tp_group_name="",
            )
            self.steps += 1
        self.requests += 1
        tokens, nats = tuple(written[0].tolist()), logits.detach().log_softmax(-1)
        self.agreed.append(sum(tokens[n] == asked.row[n] for n in asked.pinned) / len(asked.pinned))
        told = tuple({f"token_id:{t}": float(row[t]) for t in asked.watched} for row in nats)
        return Answer(tokens, tuple(nats[range(width), list(tokens)].tolist()), told)


async def fill_of(engine: VllmEngine, request: Infill) -> Fill:
    """The Fill that `engine` ends with."""
    *_, last = [event async for event in engine.infill(request)]
    assert isinstance(last, Fill)
    return last


def main() -> None:
    """Print both, side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10, help="of each kind")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = load_checkpoint("embedded", "cpu")
    server: Any = Sampled(model)
    engine = VllmEngine(Settings(checkpoint="embedded", engine_url="vllm+http://127.0.0.1:1"))
    engine._server = server
    cases, _ = lists.read(lists.shipped(), KINDS, arguments.cases)
    counts = Counter[tuple[str, str, str]]()
    for case in cases:
        request = prompt.build(case.document, case.gap, Settings())
        for method in ("ours", "vllm"):
            began = time.process_time()
            if method == "vllm":
                fill = asyncio.run(fill_of(engine, request))
            else:
                cache = PrefixCache(model.network.config.text_config)
                fill = run_to_end(denoised(model, cache, request, Clock(None)))[1][0]
            spent = time.process_time() - began
            score = score_of(case, method, finish(case.document, case.gap, fill).edit, fill)
            told = {
                "n": 1,
                "exact": score.exact,
                "offered": score.offered,
                "milliseconds": round(spent * 1000),
            }
            for name, value in told.items():
                counts[case.kind, method, name] += value
    for kind in KINDS:
        for method in ("ours", "vllm"):
            n, exact, offered, spent = (
                counts[kind, method, x] for x in ("n", "exact", "offered", "milliseconds")
            )
            print(
                f"{kind:14} {method:5} {exact:3} exact, {offered:3} offered of {n}, {spent / 1000:.0f} s of CPU"
            )
    agreed = sum(server.agreed) / max(len(server.agreed), 1)
    print(f"{server.requests} requests, {server.steps} steps; of the pins {agreed:.1%} were written, too")


if __name__ == "__main__":
    main()
