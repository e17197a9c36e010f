"""Every option of dg-lsp, its default and its sentence, in one frozen record.

Knows the environment; reads no file, and imports nothing of dg_lsp, so that every layer may use it.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

AUTO = "auto"  # the checkpoint that `checkpoints.named` chooses on this machine
EFFORTS = ("low", "normal", "high")
GRAPHS = "+graphs"  # after a CUDA device: its passes are recorded
VLLM, LLAMA = "vllm+", "llama+"  # before the address of a server that is vLLM or llama.cpp
LOG_LEVELS = ("debug", "info", "warning", "error")
_VARIABLE = "DG_LSP_"  # the beginning of the variables' names
# Those that are no settings: where engines have their files, and whether a command waits for a key at its end.
RUNTIME_DIR, WAIT = "DG_LSP_RUNTIME_DIR", "DG_LSP_WAIT"
# Files that hold passwords and keys by custom.
SECRETS = (
    *(".env*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".htpasswd", ".pgpass", ".git-credentials"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "*.ppk", "*.asc", "*.gpg"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("credentials", "credentials.*", "*_credentials.*", "*-credentials.*"),
    *("secret.*", "secrets.*", "*_secret.*", "*_secrets.*", "*-secret.*", "*-secrets.*"),
    *("*.secret", "*.secrets", "*.tfvars", "*.tfstate"),
    *(".ssh/", ".aws/", ".gnupg/", ".kube/"),
)
# A macro's name; at least two letters or digits of it are given.
_MACRO = re.compile(r"[A-Za-z_]\w{1,63}\*?", re.ASCII)
_MOST_MACROS = 100
_DAY = 86_400.0
# The least and the greatest value of each number, and why there is no greater one. A workspace may set many of them, so
# none may make a request cost more than a person could want.
RANGES: dict[str, tuple[float, float, str]] = {
    "weight_bits": (4, 16, "weights have 4, 8 or 16"),
    "threads": (0, 1024, "no machine has more cores"),
    "seed": (-(2**53), 2**53, "larger ones do not survive JSON"),
    "deadline": (0, _DAY, "that is a day; 0 is no limit"),
    "prefix_bytes": (0, 1_000_000, "no larger file is checked"),
    "suffix_bytes": (0, 1_000_000, "no larger file is checked"),
    "alternatives": (1, 10, "nobody chooses among more, and each takes as long as the first"),
    "ghost_deadline": (0, 600, "nobody waits longer for ghost text; 0 is no limit"),
    "confidence": (0, 1, "it is a probability"),
    "debounce": (0, 5_000, "that is five seconds"),
    "definition_bytes": (0, 100_000, "no model reads more of other files"),
    "idle_minutes": (0, 525_600, "that is a year"),
    "cache_megabytes": (0, 1 << 20, "that is a terabyte"),
}
T = TypeVar("T")
_LANGUAGES, _LANGUAGE = 200, 100  # items of a list of languages, and characters of each


class UsageError(ValueError):
    """A command cannot do its work; the message says the cause and the fix."""


class SettingsError(ValueError):
    """A setting has a value that cannot be used; the message names the setting and what it takes."""


def _option(default: T, sentence: str, *, machine: bool = False) -> T:
    """Return a field of Settings with its default and its sentence; `machine` options say what runs on this machine."""
    return field(default=default, metadata={"help": sentence, "machine": machine})


@dataclass(frozen=True, slots=True)
class Settings:
    """The options; each field's `help` is the sentence that `--help` and the documentation show.

    Those marked `machine` say what runs on this machine, so a workspace's settings cannot change them.
    """

    checkpoint: str = _option(
        AUTO,
        "the model: `embedded` is included; `coder`, `coder-0.5b` and `small` write better and know more "
        "languages, after `dg-lsp fetch NAME`; `auto` is the one picked in the model menu, otherwise the best that is "
        "installed, fast enough and fits in memory, with `coder-0.5b` for ghost text while `coder` takes too long; "
        "or a directory, a GGUF file, or a name of the hub such as google/diffusiongemma-26B-A4B-it (untried) after "
        "`dg-lsp fetch` of it",
        machine=True,
    )
    device: str = _option(
        "auto",
        "the device of the model: auto (a GPU if there is one), cpu, cuda, cuda:1; cuda+cpu:20 or "
        "cpu+disk:8 keeps 20 or 8 layers on the first device and loads the others when they are needed; "
        "cuda+graphs records CUDA graphs",
        machine=True,
    )
    weight_bits: int = _option(
        16,
        "the bits of the weights. For a GGUF file, such as that of `coder`: 4 keeps its 4 bits; 8 takes 8 bits for all "
        "matrices, which reads two to five times as fast; 16 means 8 if the CPU has AVX-512 VNNI and that takes at "
        "most an eighth of the machine's memory, otherwise 4. For DiffusionGemma 26B (untried): 16 as in the "
        "checkpoint; 8 or 4 rounds the experts' weights while it is loaded, 17 GB instead of 50 with 4",
        machine=True,
    )
    threads: int = _option(
        0,
        "the maximum of torch threads on the CPU; 0 is half of the cores, or 2 of 2 or 3. "
        "Fewer are used while other programs use the cores. A running engine keeps its own",
        machine=True,
    )
    effort: str = _option(
        "normal", "how much to compute for a fill: low, normal or high (more lengths, draws and steps)"
    )
    seed: int = _option(
        0,
        "the seed of the noise; without a deadline, the same seed, file, machine and number of threads give the same "
        "fill",
    )
    deadline: float = _option(
        0.0,
        "seconds after which a requested fill takes the best one so far; if there is none yet, the first one within "
        "twice that time; 0 is no limit",
    )
    prefix_bytes: int = _option(16_000, "bytes of the file before the gap that are sent to the model")
    suffix_bytes: int = _option(4_000, "bytes of the file after the gap that are sent to the model")
    automatic: bool = _option(True, "offer ghost text while you type; off: only on request")
    prose: bool = _option(
        False,
        "offer ghost text in comments and strings while you type, too; on request it is always offered there",
    )
    disabled_languages: tuple[str, ...] = _option(
        (), "language ids that get no ghost text and no code action"
    )
    exclude: tuple[str, ...] = _option(
        SECRETS,
        "globs of further files that may hold secrets and are never read: no ghost text, no code action, "
        "no command; they are added to the default ones. `*.pem` is compared with the names of a file and "
        "its folders, `.ssh/` with those of its folders only, `deploy/*.py` with its path in the "
        "workspace folder and its absolute path. `/home/me/private` excludes that folder, a whole repository "
        "for example. Links are followed: a file is excluded under each of its names",
    )
    include: tuple[str, ...] = _option(
        (),
        "globs to remove from the default ones of `exclude`, spelled as they are there, such as "
        "`credentials.*`; `*` removes all of them",
        machine=True,
    )
    macros: tuple[str, ...] = _option(
        (),
        "names of macros in C and C++, such as MY_API or MY_*, that the parser reads as blanks, with "
        "their arguments, because code does not parse with them; many others are recognised by themselves",
    )
    exclude_ignored: bool = _option(False, "exclude the files that git ignores, too")
    ghost_languages: tuple[str, ...] = _option(
        (),
        "language ids that get ghost text while you type although the checkpoint has not learned them; * "
        "means all of them",
    )
    alternatives: int = _option(3, "the number of different fills for ghost text on request")
    ghost_deadline: float = _option(
        2.0,
        "seconds after which ghost text takes the best fill so far; if there is none yet, the first one "
        "within twice that time, of several lines within four times; 0 is no limit",
    )
    confidence: float = _option(
        0.25,
        "the lowest probability of being right, 0 to 1, with which ghost text is shown while you type; of a less "
        "likely text only its likely beginning is shown, if it has one. 0 shows everything, and so does a "
        "request",
    )
    debounce: int = _option(
        50,
        "how long to wait for another keystroke before ghost text is computed, in milliseconds, while you type faster "
        "than the engine answers. Capped at a quarter of the usual time of a fill. Ignored in Neovim, whose plug-in "
        "has its own `debounce`. Within a word that was computed before, the wait is a little longer than your keys "
        "usually take, 0.3 seconds at most; 0 turns off both",
    )
    prefetch: bool = _option(
        True,
        "write ahead: while you look at ghost text, what belongs below it, so that it grows; and the next line as soon "
        "as ghost text is accepted at the end of a line. On a battery nothing is written below ghost text",
    )
    next_edit: bool = _option(
        True,
        "after an edit, offer the same edit at the other places that need it, such as the uses of a name "
        "that you have changed at its definition: in this document and in other open ones",
    )
    related: bool = _option(
        True,
        "look for fills in other files of the project, too: open documents and, after they were read in "
        "the background, the workspace's folders, without excluded files, hidden folders and those of "
        "packages and builds. A code model on this machine also reads the lines edited, copied or "
        "looked at last in open documents",
    )
    definition_bytes: int = _option(
        4_000,
        "bytes of definitions, from other files of the project, of the names around the gap that are sent "
        "to the model. Only chat models use them, such as DiffusionGemma",
    )
    idle_minutes: float = _option(
        0.0,
        "minutes without a request after which the engine exits; 0 is 15 on a CPU, 60 on a GPU. A running "
        "engine keeps its own",
        machine=True,
    )
    cache_megabytes: int = _option(
        0,
        "megabytes for the encoded prefixes of several documents; 0 is 192 on a CPU, 4096 on a GPU. A "
        "running engine keeps its own",
        machine=True,
    )
    engine_url: str = _option(
        "",
        "the address of a team's server (`dg-lsp serve-engine`) that fills instead of this machine, such "
        "as https://team.example:8765; it must be https unless it is this machine. "
        "vllm+https://gpu.example:8000 is a vLLM server, whose tokenizer `checkpoint` then names, and "
        "llama+http://127.0.0.1:8012 is llama.cpp's, with a model that knows fill-in-the-middle. Your "
        "source text is sent there",
        machine=True,
    )
    engine_token_file: str = _option(
        "", "the file with your token for `engine_url`; only you may have the right to read it", machine=True
    )
    engine_ca: str = _option(
        "",
        "a file of certificates (PEM) to check `engine_url` with; the default are those that this system "
        "trusts",
        machine=True,
    )
    engine_fallback: bool = _option(
        False,
        "fill on this machine, with `checkpoint`, while `engine_url` is down, busy or slow",
        machine=True,
    )
    statistics: bool = _option(
        True,
        "count how often ghost text is shown, accepted, dismissed and kept, in a file on this machine that "
        "holds no text and no path and is never sent; `dg-lsp stats` shows the counts",
        machine=True,
    )
    log_level: str = _option(
        "info", "the lowest level of messages in the log: debug, info, warning or error; never source text"
    )

    @property
    def place(self) -> str:
        """The device without the suffix that says how its passes run."""
        return self.device.removesuffix(GRAPHS)


def help_of(name: str) -> str:
    """Return the sentence about the setting `name`."""
    return str(next(f.metadata["help"] for f in fields(Settings) if f.name == name))


def name_of(given: str) -> str:
    """Return the option that a client calls `given`, in camel or snake case: `ghost_deadline` for `ghostDeadline`."""
    return re.sub(r"[A-Z]", lambda m: "_" + m[0].lower(), given)


def path_of(name: str) -> Path:
    """Return the absolute path of `name`: `/home/ann/models` for `~/models`.

    It stays as it is if there is no such home, or if the current folder was deleted.
    """
    try:
        return Path(name).expanduser().absolute()
    except (OSError, RuntimeError):
        return Path(name)


def of_machine() -> tuple[str, ...]:
    """Return the options that a workspace's settings cannot change."""
    return tuple(f.name for f in fields(Settings) if f.metadata.get("machine"))


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings in variables such as `DG_LSP_CHECKPOINT`; the others keep their defaults."""
    names = {f.name: variable_of(f.name) for f in fields(Settings)}
    return override(Settings(), {name: environment[key] for name, key in names.items() if key in environment})


def variable_of(name: str) -> str:
    """Return the environment variable of the setting `name`: `DG_LSP_CHECKPOINT` for `checkpoint`."""
    return _VARIABLE + name.upper()


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return a sentence for each variable that is named like a setting's and is ignored, such as `DG_LSP_EFORT`."""
    known = [RUNTIME_DIR, WAIT, *(variable_of(f.name) for f in fields(Settings))]
    sentences = []
    for name in sorted(environment):
        if name.upper().startswith(_VARIABLE) and name not in known:
            near = get_close_matches(name.upper(), known, 1, cutoff=0.75)
            advice = f"did you mean {near[0]}?" if near else "no setting has such a name"
            sentences.append(f"the environment variable {name} has no effect; {advice}")
    return sentences


def override(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return `settings` with `values` replaced; texts are read as the field's kind, and None leaves a field as it is.

    Names may be in snake case or, as editors write them, in camel case.

    Raises:
        SettingsError: an unknown name, or a value of the wrong kind or range.
    """
    kinds: dict[str, type] = {f.name: type(getattr(Settings(), f.name)) for f in fields(Settings)}
    changes: dict[str, Any] = {}
    for given, value in values.items():
        name = name_of(given)
        if name not in kinds:
            raise SettingsError(f"unknown setting {given!r}; known are {', '.join(kinds)}")
        if value is None:
            continue
        try:
            changes[name] = _READERS.get(kinds[name], kinds[name])(value)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise SettingsError(f"setting {given!r} takes a {_KINDS[kinds[name]]}, not {value!r}") from error
    changed = replace(settings, **changes)
    _check(changed)
    # Globs are added to the earlier ones, without the default globs that `include` removes.
    taken = changes.get("include", ())
    kept = [glob for glob in settings.exclude if glob not in taken and not ("*" in taken and glob in SECRETS)]
    exclude = tuple(dict.fromkeys((*kept, *changes.get("exclude", ()))))
    return replace(changed, exclude=exclude)


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}[
        str(value).strip().lower()
    ]


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise TypeError(value)
    return tuple(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError(value)
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


_READERS: dict[type, Callable[[Any], Any]] = {
    bool: _switch, tuple: _texts, float: _number, int: _count, str: _text
}  # fmt: skip
_KINDS = {bool: "true or false", tuple: "list of texts", float: "number", int: "whole number", str: "text"}


def _check(settings: Settings) -> None:
    _check_macros(settings.macros)
    for name, known in (("effort", EFFORTS), ("log_level", LOG_LEVELS)):
        if (given := getattr(settings, name)) not in known:
            raise SettingsError(f"setting {name!r} takes one of {', '.join(known)}, not {given!r}")
    for name, (least, most, why) in RANGES.items():
        # NaN is in no range.
        if not least <= getattr(settings, name) <= most:
            raise SettingsError(f"setting {name!r} must be a number from {least:,.0f} to {most:,.0f}: {why}")
    for name in ("disabled_languages", "ghost_languages"):
        languages = getattr(settings, name)
        if len(languages) > _LANGUAGES or any(len(one) > _LANGUAGE for one in languages):
            raise SettingsError(f"setting {name!r} takes at most {_LANGUAGES} language ids")
    if unknown := [glob for glob in settings.include if glob not in (*SECRETS, "*")]:
        raise SettingsError(
            f"setting 'include' names default globs of 'exclude', and {unknown[0][:80]!r} is none of them; they are "
            f"{', '.join(SECRETS)}, or * for all"
        )
    check_url(settings.engine_url)
    if is_foreign(settings.engine_url) and settings.engine_fallback:
        raise SettingsError(
            "setting 'engine_fallback' goes with a server of dg-lsp only, not with vLLM and llama.cpp"
        )


def _check_macros(names: tuple[str, ...]) -> None:
    """Refuse what is no name of a macro, and more of them than a file could be searched for in time."""
    for name in names:
        if not _MACRO.fullmatch(name):
            raise SettingsError(
                f"setting 'macros' takes names of macros such as MY_API, or MY_* for all that begin so, not {name!r}"
            )
    if len(names) > _MOST_MACROS:
        raise SettingsError(
            f"setting 'macros' takes at most {_MOST_MACROS} names, not {len(names)}; use MY_*"
        )


def is_foreign(url: str) -> bool:
    """Return whether `url`, an `engine_url`, is the address of a server that is vLLM or llama.cpp."""
    return url.startswith((VLLM, LLAMA))


def is_team(url: str) -> bool:
    """Return whether `url`, an `engine_url`, is the address of a team's server."""
    return bool(url) and not is_foreign(url)


def address_in(url: str) -> str:
    """Return the address in `url`, an `engine_url`: `llama+http://127.0.0.1:8012` is `http://127.0.0.1:8012`."""
    return url.removeprefix(VLLM).removeprefix(LLAMA)


def check_url(url: str) -> None:
    """Raise SettingsError for an address that is none, or over which text would leave this machine in the clear.

    The message does not contain it, as it may hold a password.
    """
    if not url:
        return
    try:
        parts = urlsplit(address_in(url))
        named = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        named = False
    if not named or "@" in parts.netloc or parts.query or parts.fragment:
        example = "https://team.example:8765"
        raise SettingsError(f"setting 'engine_url' is an address such as {example}, without a password")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SettingsError(
            "setting 'engine_url' must begin with https, or vllm+https, unless it is this machine"
        )


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address, is this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
