"""`python -m dg_lsp` is the same as `dg-lsp`."""

from dg_lsp.cli.main import run_process

if __name__ == "__main__":
    run_process()
