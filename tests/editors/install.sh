#!/bin/bash
# Fetches what the editor tests drive: Chromium (by apt), Neovim, VS Code and a few npm packages (into .editors/).
# Safe to run again: what is there in the wanted version stays. usage: [PATCHELF=path] tests/editors/install.sh
set -euo pipefail
SUITE=forky; NVIM_WANTED='NVIM v0.12'
CODE_SERVER=4.139.1; NODE=24.21.0; PLAYWRIGHT=1.65.1; STYLUA=2.5.2

HERE=$(dirname "$(realpath "$0")"); ROOT=$(realpath "$HERE/../.."); EDITORS=$ROOT/.editors; LOG=$EDITORS/install.log
mkdir -p "$EDITORS"; : > "$LOG"
fail() { tail -n 15 "$LOG" >&2; echo "editors: $* (all of the log: $LOG)" >&2; exit 1; }
[ "$(uname -sm)" = "Linux x86_64" ] || fail "only Linux on x86_64 is served"

# part NAME PROOF STAMP COMMAND...: run the command unless PROOF exists and a former run left the same stamp.
part() {
  local name=$1 proof=$2 stamp=$3 began=$SECONDS; shift 3
  [ -e "$proof" ] && [ "$(cat "$EDITORS/$name.stamp" 2>/dev/null)" = "$stamp" ] && return
  rm -f "$EDITORS/$name.stamp"
  "$@" >> "$LOG" 2>&1 || fail "$name could not be installed"
  echo "$stamp" > "$EDITORS/$name.stamp"
  echo "editors: $name installed in $((SECONDS - began)) s"
}

# The parts are chains of &&, since `set -e` is off in a command whose failure is caught.
browser() {
  command -v chromium && [ -d /usr/share/fonts/truetype/dejavu ] && return
  [ "$(id -u)" = 0 ] || { echo "Chromium is missing: apt-get install chromium fonts-dejavu-core, as root"; return 1; }
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update && apt-get -q -y install --no-install-recommends chromium fonts-dejavu-core
}

neovim() {
  "$HERE/get-nvim.sh" "$SUITE" "$EDITORS/nvim" && { "$EDITORS/nvim/bin/nvim" --version | grep -q "^$NVIM_WANTED" \
    || { echo "$SUITE holds another Neovim than the wanted $NVIM_WANTED"; return 1; }; }
}

packages() {
  command -v npm || { echo "npm is missing; install it"; return 1; }
  rm -rf "$EDITORS/npm" && mkdir -p "$EDITORS/npm" && cd "$EDITORS/npm" \
    && printf '{"name":"editor-tests","private":true}\n' > package.json \
    && npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
      "playwright-core@$PLAYWRIGHT" \
      "@johnnymorganz/stylua@$STYLUA"
}

# Runs in Neovim's own Lua, so no other is installed.
luacheck() {
  local into=$EDITORS/luacheck
  rm -rf "$into" && mkdir -p "$into" && cd "$into" && apt-get -q download lua-check lua-argparse lua-filesystem \
    && for package in ./*.deb; do dpkg-deb -x "$package" . || return 1; done
}

part chromium "$(command -v chromium)" "with fonts" browser
# Neovim's prefix is written into its binary, so a moved checkout needs another.
part nvim "$EDITORS/nvim/bin/nvim" "$SUITE, $NVIM_WANTED, $EDITORS" neovim
part vscode "$EDITORS/vscode/node_modules" "$CODE_SERVER on Node $NODE" \
  "$HERE/get-code-server.sh" "$EDITORS/vscode" "$CODE_SERVER" "$NODE"
part npm "$EDITORS/npm/node_modules" "playwright-core $PLAYWRIGHT, stylua $STYLUA" packages
part luacheck "$EDITORS/luacheck/usr" "from apt" luacheck
echo "editors: ready"
