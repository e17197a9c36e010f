"""Real editors drive the real server: Neovim and VS Code show, accept, fill and undo.

`sandbox.py` holds the world a test runs in, `nvim.py` and `vscode.mjs` drive the editors, `install.sh` fetches them.
Nothing here looks inside the server; what an editor shows and what it saves is all that counts.
"""
