#!/bin/sh
# Install dg-lsp for this user in ~/.dg-lsp, with a link to the program in ~/.local/bin; run it again to update.
# It takes the wheel beside it, as a folder of a release has one, else the clone that it is in, else what is named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
env=$HOME/.dg-lsp bin=$HOME/.local/bin index=https://download.pytorch.org/whl/cpu
for wheel in "$here"/dg_lsp-*.whl; do
  test -f "$wheel" || wheel=$here
done
what=${1:-$wheel}

test -x "$env/bin/pip" || "${PYTHON:-python3}" -m venv "$env"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$env/bin/pip" install --quiet uv
# torch's own index has a build for this machine, of 0.2 GB for a CPU.
with_uv() {
  "$env/bin/uv" pip install --python "$env" --reinstall-package dg-lsp --torch-backend "${UV_TORCH_BACKEND:-auto}" -- "$what"
}
# pip knows the mirrors and the folders of wheels that this machine is set to, as uv does not. What Python compiles when
# it first imports a module takes a quarter of what pip would compile of all modules (0.25 GB); uv compiles none either.
with_pip() {
  "$env/bin/pip" install --no-compile --find-links "$here" "$@" -- "$what" &&
    "$env/bin/pip" install --no-compile --quiet --no-deps --force-reinstall -- "$what"
}
# Where torch's own index cannot be reached, the build for CPUs may be on a mirror, in a folder, or beside this script.
cpu_build() {
  "$env/bin/pip" index versions --find-links "$here" torch 2>/dev/null | tr ' (),' '\n' | grep -m 1 '^2\.1[123]\..*+cpu$'
}
with_uv || {
  echo "install.sh: torch's own index does not work here; asking pip for torch's build for CPUs" >&2
  if build=$(cpu_build); then
    echo "torch==$build" > "$env/constraints.txt"
    with_pip --constraint "$env/constraints.txt"
  elif test -n "${CUDA:-}" || command -v nvidia-smi > /dev/null; then
    with_pip
  else
    cat >&2 << END
install.sh: pip finds no build of torch for CPUs either, and the one for NVIDIA GPUs takes 5 GB. Do one of these, and run it again:
- copy torch's wheel for CPUs to $here; 'make release' makes a folder with it and this script on a machine that reaches $index
- name a mirror of that index, or a folder with the wheel: PIP_EXTRA_INDEX_URL=URL, or PIP_FIND_LINKS=FOLDER
- take the 5 GB: CUDA=1
END
    exit 1
  fi
}
# What only installs it, and torch's own tests and compilers of protocols, take 0.2 GB.
"$env/bin/pip" uninstall --quiet --yes uv
rm -rf "$env"/lib/python3*/site-packages/torch/test "$env"/lib/python3*/site-packages/torch/bin/test_* "$env"/lib/python3*/site-packages/torch/bin/protoc*
mkdir -p "$bin"
ln -sf "$env/bin/dg-lsp" "$bin/dg-lsp"
echo "$bin/dg-lsp is installed. Next: $bin/dg-lsp fetch coder, then $bin/dg-lsp editor install nvim, or vscode"
