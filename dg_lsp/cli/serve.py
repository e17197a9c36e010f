"""`dg-lsp --stdio`: run the language server on stdin and stdout."""

import argparse
import gc
import logging
import sys

from dg_lsp.cli.options import SERVING, add_settings, explain, given_settings
from dg_lsp.cli.shown import Formatter
from dg_lsp.engine.team import open_engine
from dg_lsp.server.app import make_server
from dg_lsp.server.rpc.streams import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the server."""
    explain(
        parser,
        "Run the language server on stdin and stdout. Editors start it as dg-lsp --stdio; without a command it is the "
        "same. The engine is a process of its own that all windows share: dg-lsp engine status.",
        "dg-lsp --stdio --log-level debug",
        "0 after shutdown and exit, else 1",
    )
    parser.add_argument("--stdio", action="store_true", help="use stdin and stdout (the default)")
    add_settings(parser, SERVING)


def run(arguments: argparse.Namespace) -> int:
    """Serve one client until it says exit or is gone."""
    settings = given_settings(arguments)
    log = logging.getLogger("dg_lsp")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    log.addHandler(handler)
    log.setLevel(settings.log_level.upper())
    if sys.stdin.isatty():
        log.warning("a language server waits for its editor here; end it with Ctrl+D, or see dg-lsp --help")
    server = make_server(settings, open_engine)
    # The objects that exist now stay; a garbage collector that walks through all of them would delay a reply.
    gc.freeze()
    return serve(server, arguments.parent)
