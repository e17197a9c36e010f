"""What vLLM takes and gives, recorded from its own classes, and a server that holds its clients to that.

`python -m tests.engine.vllm_contract` records it anew where vLLM can be imported; no GPU is needed for that.
"""

# ruff: noqa: PLC0415  (vLLM is seldom there)

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FILE = Path(__file__).parent / "data" / "vllm_contract.json"
# The fields of a completion request that this program sends.
SENT = (
    *("model", "prompt", "max_tokens", "temperature", "min_p", "top_p", "top_k", "ignore_eos"),
    *("return_token_ids", "return_tokens_as_token_ids", "logprobs", "logprob_token_ids", "vllm_xargs"),
)
CANVAS, VOCABULARY = 256, 4096
# A request for a canvas of 4 slots, two of them pinned.
REQUEST: dict[str, Any] = {
    "model": "dg",
    "prompt": [2, 7],
    "max_tokens": 4,
    "temperature": 1.0,
    "min_p": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "ignore_eos": True,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
    "logprobs": 1,
    "logprob_token_ids": [9, 11],
    "vllm_xargs": {
        "diffusion_canvas_length": 4,
        "diffusion_seed_canvas": [5, 6, 9, 11],
        "diffusion_pinned": [2, 3],
        "diffusion_max_steps": 12,
        "diffusion_read_only": 1,
    },
}
# Changes of that request. Those of `vllm_xargs` begin with "diffusion"; None takes a field away.
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"diffusion_canvas_length": 257},
    {"diffusion_canvas_length": 0},
    {"diffusion_canvas_length": 5},
    {"diffusion_seed_canvas": [5, 6, 9]},
    {"diffusion_seed_canvas": [5, 6, 9, VOCABULARY]},
    {"diffusion_seed_canvas": [5, 6, 9, -1]},
    {"diffusion_seed_canvas": None},
    {"diffusion_pinned": [4]},
    {"diffusion_pinned": [-1]},
    {"diffusion_pinned": []},
    {"diffusion_max_steps": 0},
    {"diffusion_read_only": 2},
    {"temperature": 0.5},
    {"min_p": 0.1},
    {"seed": 3},
    {"logprob_token_ids": list(range(129))},
    {"prompt": [-1]},
    {"max_tokens": 9},
)


def changed(change: dict[str, Any]) -> dict[str, Any]:
    """REQUEST with `change` made."""
    body = {**REQUEST, "vllm_xargs": dict(REQUEST["vllm_xargs"])}
    for name, value in change.items():
        place = body["vllm_xargs"] if name.startswith("diffusion") else body
        place[name] = value
        if value is None:
            del place[name]
    return body


@cache
def contract() -> dict[str, Any]:
    """The recorded contract."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def why_wrong(body: dict[str, Any], canvas: int = CANVAS, vocabulary: int = VOCABULARY) -> str:
    """Why vLLM would refuse `body`, or ignore a part of it, in a few words; empty if it would not."""
    fields = contract()["fields"]
    if unknown := [*(body.keys() - fields.keys())]:
        return f"{unknown[0]} is not known, or not recorded"
    for name, value in body.items():
        if not _is(value, fields[name]):
            return f"{name} has a wrong value"
    if body.get("temperature", 1.0) != 1.0 or body.get("min_p") or body.get("seed") is not None:
        return "DiffusionGemma takes no temperature, min_p or seed of a request"
    if len(body.get("logprob_token_ids", ())) > 128:
        return "logprob_token_ids are too many"
    return _why_wrong_xargs(body.get("vllm_xargs") or {}, canvas, vocabulary)


def _why_wrong_xargs(given: dict[str, Any], canvas: int, vocabulary: int) -> str:
    known = {f"diffusion_{n}" for n in ("canvas_length", "seed_canvas", "pinned", "max_steps", "read_only")}
    if unknown := [*(given.keys() - known)]:
        return f"{unknown[0]} is ignored"
    width = given.get("diffusion_canvas_length", canvas)
    seed, pins = given.get("diffusion_seed_canvas"), given.get("diffusion_pinned")
    rules: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("diffusion_canvas_length", lambda: 0 < width <= canvas),
        ("diffusion_seed_canvas", lambda: seed is None or all(0 <= token < vocabulary for token in seed)),
        ("diffusion_seed_canvas", lambda: seed is None or len(seed) == width),
        ("diffusion_pinned needs a diffusion_seed_canvas", lambda: pins is None or seed is not None),
        ("diffusion_pinned", lambda: pins is None or all(0 <= slot < width for slot in pins)),
        ("diffusion_max_steps", lambda: given.get("diffusion_max_steps", 1) > 0),
        ("diffusion_read_only", lambda: given.get("diffusion_read_only", 0) in (0, 1)),
    )
    return next((words for words, holds in rules if not holds()), "")


def _is(value: Any, schema: dict[str, Any]) -> bool:
    """Whether `value` is what the JSON schema says, as far as a completion request's fields use schemas."""
    if "anyOf" in schema:
        return any(_is(value, one) for one in schema["anyOf"])
    kinds: dict[str, Callable[[], bool]] = {
        "integer": lambda: type(value) is int and value >= schema.get("minimum", value),
        "number": lambda: type(value) in (int, float),
        "string": lambda: isinstance(value, str),
        "boolean": lambda: isinstance(value, bool),
        "null": lambda: value is None,
        "array": lambda: isinstance(value, list) and all(_is(one, schema["items"]) for one in value),
        "object": lambda: (
            isinstance(value, dict)
            and all(_is(one, schema["additionalProperties"]) for one in value.values())
        ),
    }
    return kinds[schema["type"]]()


def record() -> dict[str, Any]:
    """The contract, from vLLM's own classes.

    Raises:
        ImportError: vLLM, or something that it needs, is not here.
    """
    from vllm import __version__
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.serve.tokenize.protocol import TokenizeCompletionRequest, TokenizeResponse
    from vllm.sampling_params import MAX_LOGPROB_TOKEN_IDS

    assert MAX_LOGPROB_TOKEN_IDS == 128
    schema = CompletionRequest.model_json_schema()["properties"]
    tokenized = TokenizeResponse(count=1, max_model_len=4096, tokens=[7]).model_dump(mode="json")
    asked = TokenizeCompletionRequest(model="dg", prompt="x", add_special_tokens=False)
    return {
        "vllm": __version__,
        "fields": {
            name: {k: v for k, v in schema[name].items() if k not in ("title", "description")}
            for name in SENT
        },
        "sampling": _sampling(changed({})),
        "refused": [[change, _refusal(changed(change))] for change in CHANGES],
        "answer": _answer(),
        "tokenize": {"request": asked.model_dump(mode="json", exclude_unset=True), "answer": tokenized},
        "models": _models(),
    }


def _params(body: dict[str, Any]) -> Any:
    """The sampling parameters that vLLM makes of `body` and has checked."""
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.utils.diffusion import validate_diffusion_sampling_params

    request = CompletionRequest(**body)
    # What a server's generation_config.json may say.
    given = {"temperature": 0.7, "top_k": 64, "top_p": 0.95, "min_p": 0.1}
    params = request.to_sampling_params(request.max_tokens, given)
    model = SimpleNamespace(is_diffusion=True, max_logprobs=20, get_vocab_size=lambda: VOCABULARY)
    params._validate_diffusion(model)
    params._validate_logprobs(model)
    validate_diffusion_sampling_params(params, canvas_length=CANVAS, vocab_size=VOCABULARY)
    params.update_from_generation_config({"eos_token_id": [1, 106, 50]}, 1)
    return params


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    params = _params(body)
    names = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "ignore_eos", "logprobs")
    more = {"eos": params.eos_token_id, "asked": params.logprob_token_ids, "stop": params.stop_token_ids}
    return {name: getattr(params, name) for name in names} | {"extra_args": params.extra_args} | more


def _refusal(body: dict[str, Any]) -> str:
    from vllm.exceptions import VLLMValidationError

    try:
        _params(body)
    except VLLMValidationError as error:
        return str(error)
    except ValueError as error:  # pydantic's
        return type(error).__name__
    return ""


def _answer() -> dict[str, Any]:
    """The answer to REQUEST, made by vLLM's own code of an output of its engine."""
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion
    from vllm.logprobs import Logprob
    from vllm.outputs import CompletionOutput, RequestOutput

    # The sampled token first, then those that were asked for. At the pin of token 9 the model would write 12.
    tokens, rows = [5, 8, 12, 11], [{5: -0.5}, {8: -0.25}, {12: -1.0}, {11: -0.125}]
    logs = [{**row, **{token: row.get(token, -3.0) for token in (9, 11)}} for row in rows]
    output = CompletionOutput(
        index=0,
        text="abcd",
        token_ids=tokens,
        cumulative_logprob=-1.875,
        logprobs=[{token: Logprob(nats, 1) for token, nats in row.items()} for row in logs],
        finish_reason="length",
    )
    result = RequestOutput("r", "", [2, 7], None, [output], finished=True)
    serving = OpenAIServingCompletion.__new__(OpenAIServingCompletion)
    serving.return_tokens_as_token_ids = serving.enable_prompt_tokens_details = False
    serving.enable_per_request_metrics = False
    serving.system_fingerprint = None
    metadata = SimpleNamespace(final_usage_info=None)
    answer = serving.request_output_to_completion_response(
        [result], CompletionRequest(**REQUEST), "cmpl-1", 0, "dg", None, metadata
    )
    found: dict[str, Any] = answer.model_dump(mode="json")
    return found


def _models() -> dict[str, Any]:
    from vllm.entrypoints.serve.engine.protocol import ModelCard, ModelList

    card = ModelCard(id="dg", created=0, root="google/dg", max_model_len=4096)
    found: dict[str, Any] = ModelList(data=[card]).model_dump(
        mode="json", exclude={"data": {0: {"permission"}}}
    )
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=1) + "\n")
