"""`dg-lsp serve-engine`: serve one engine to a team, over TCP and TLS."""

import argparse
import os

from dg_lsp.cli.options import add_settings, explain, log_to_stderr, settings_of
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting
from dg_lsp.settings import UsageError, path_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp serve-engine`."""
    explain(
        parser,
        "Serve one engine to a team, in the foreground. Editors reach it by the setting engine_url, with a token each. "
        "docs/team.md describes how to set it up.",
        "dg-lsp serve-engine token alice --tokens tokens, then dg-lsp serve-engine --tokens tokens --host 0.0.0.0 "
        "--certificate cert.pem --key key.pem",
        "0 ended by SIGTERM, 2 usage, 4 the checkpoint cannot be loaded, 5 the engine hung",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("run", "token"),
        default="run",
        help="token: make a token for NAME and print it",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="token: its owner")
    parser.add_argument(
        "--replace", action="store_true", help="token: end the tokens that NAME has, and make a new one"
    )
    parser.add_argument(
        "--tokens",
        type=path_of,
        required=True,
        help="the file of tokens, NAME:SHA256 a line; read again when it changes",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8765, help="the port to listen on (default: 8765)")
    parser.add_argument("--certificate", type=path_of, help="the TLS certificate and its chain, PEM")
    parser.add_argument("--key", type=path_of, help="the key of the certificate, PEM")
    add_settings(parser, ("checkpoint", "device", "weight_bits", "threads", "cache_megabytes", "log_level"))


def run(arguments: argparse.Namespace) -> int:
    """Run the given action; return the exit code."""
    if (arguments.action == "token") != (arguments.name is not None):
        raise UsageError("name the owner of the token: dg-lsp serve-engine token NAME --tokens FILE")
    if arguments.replace and arguments.action != "token":
        raise UsageError("--replace is for a token: dg-lsp serve-engine token NAME --replace --tokens FILE")
    if arguments.action == "token":
        from dg_lsp.serving.tokens import make_token

        # In a locale that is not UTF-8, a name is still read as UTF-8, as the file is.
        name = os.fsencode(arguments.name).decode("utf-8", "surrogateescape")
        show(make_token(arguments.tokens, name, [name] if arguments.replace else []))
        return 0
    from dg_lsp.serving.team import Listening, run_server

    settings = settings_of(arguments)
    listening = Listening(
        arguments.tokens, arguments.host, arguments.port, arguments.certificate, arguments.key
    )
    with Waiting(f"loading {settings.checkpoint}") as line:
        # The log appears above the line.
        log_to_stderr(settings.log_level, ["httpx2", "uvicorn.error"])
        return run_server(settings, listening, line.stop)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text} is not a port; name one from 0 to 65535")
    return int(text)
