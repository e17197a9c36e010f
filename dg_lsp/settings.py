"""Every option of dg-lsp, its default and its sentence, in one frozen record.

Knows the environment; imports nothing of dg_lsp, so that every layer may use it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

EFFORTS = ("low", "normal", "high")


class SettingsError(ValueError):
    """A setting has a value that cannot be used; the message names the setting and what it takes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options; each field's `help` is the sentence that `--help` and the documentation show."""

    checkpoint: str = field(
        default="embedded",
        metadata={
            "help": "the model: `embedded`, a directory, or a hub name such as google/diffusiongemma-26B-A4B-it"
        },
    )
    device: str = field(
        default="auto",
        metadata={"help": "where the model runs: auto, cpu, cuda, cuda:1, or an accelerate device map"},
    )
    threads: int = field(
        default=0, metadata={"help": "torch threads on the CPU; 0 takes half of the cores, but at least one"}
    )
    effort: str = field(
        default="normal",
        metadata={"help": "how hard to try: low, normal or high (more lengths, draws and steps)"},
    )
    seed: int = field(default=0, metadata={"help": "the same seed, file and machine give the same fill"})
    deadline: float = field(
        default=0.0, metadata={"help": "seconds after which the best fill so far is taken; 0 is no limit"}
    )
    prefix_bytes: int = field(
        default=16_000,
        metadata={"help": "how much of the file before the gap is sent to the model, in bytes"},
    )
    suffix_bytes: int = field(
        default=4_000, metadata={"help": "how much of the file after the gap is sent to the model, in bytes"}
    )


def help_of(name: str) -> str:
    """The sentence that belongs to the setting `name`."""
    return str(next(f.metadata["help"] for f in fields(Settings) if f.name == name))


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from variables such as `DG_LSP_CHECKPOINT`; what is not set keeps its default.

    Raises:
        SettingsError: a variable holds a value of the wrong kind.
    """
    names = {f.name: f"DG_LSP_{f.name.upper()}" for f in fields(Settings)}
    return override(Settings(), {name: environment[key] for name, key in names.items() if key in environment})


def override(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """`settings` with `values` put in; texts are read as the field's kind, and None leaves the field alone.

    Raises:
        SettingsError: an unknown name, or a value of the wrong kind or range.
    """
    kinds: dict[str, type] = {f.name: type(getattr(Settings(), f.name)) for f in fields(Settings)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in kinds:
            raise SettingsError(f"unknown setting {name!r}; known are {', '.join(kinds)}")
        if value is None:
            continue
        try:
            changes[name] = kinds[name](value)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"setting {name!r} takes a {kinds[name].__name__}, not {value!r}") from error
    changed = replace(settings, **changes)
    _check(changed)
    return changed


def _check(settings: Settings) -> None:
    if settings.effort not in EFFORTS:
        raise SettingsError(f"setting 'effort' takes one of {', '.join(EFFORTS)}, not {settings.effort!r}")
    for name in ("threads", "deadline", "prefix_bytes", "suffix_bytes"):
        if getattr(settings, name) < 0:
            raise SettingsError(f"setting {name!r} must not be negative")
