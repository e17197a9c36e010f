"""dg-lsp: fill gaps in code with a language model.

Nothing happens at import; the subcommands of `dg_lsp.cli.main` import what they need.
"""

__version__ = "0.1.0"
