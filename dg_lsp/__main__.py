"""`python -m dg_lsp` is the same as `dg-lsp`."""

from dg_lsp.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
