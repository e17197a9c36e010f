#!/bin/sh
# Install dg-lsp for this user in ~/.dg-lsp, with a link to the program in ~/.local/bin; run it again to update.
# It takes the wheel beside it, as a folder of a release has one, else the clone that it is in, else what is named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
env=$HOME/.dg-lsp bin=$HOME/.local/bin
for wheel in "$here"/dg_lsp-*.whl; do
  test -f "$wheel" || wheel=$here
done
what=${1:-$wheel}

test -x "$env/bin/pip" || "${PYTHON:-python3}" -m venv "$env"
"$env/bin/pip" install --quiet --disable-pip-version-check uv
into() {
  "$env/bin/uv" pip install --python "$env" --reinstall-package dg-lsp "$@" -- "$what"
}
# torch's own index has a build for this machine, of 0.2 GB for a CPU. Where it cannot be reached, a wheel of that build
# beside this script does as well, or one on an index that uv is set to; the build of the usual index is for NVIDIA's GPUs.
backend=${UV_TORCH_BACKEND:-auto}
unset UV_TORCH_BACKEND # which uv would obey at the second try, too
into --torch-backend "$backend" || {
  echo "install.sh: trying without torch's own index; without a build for the CPU beside $0 this takes 5 GB" >&2
  into --find-links "$here"
}
mkdir -p "$bin"
ln -sf "$env/bin/dg-lsp" "$bin/dg-lsp"
echo "$bin/dg-lsp is installed. Next: $bin/dg-lsp fetch coder, then $bin/dg-lsp editor install nvim, or vscode"
