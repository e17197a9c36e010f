#!/usr/bin/env bash
# Rotate the logs in a folder, but keep the newest ones.
set -euo pipefail

keep=${KEEP:-5}
folder="${1:-/var/log/shop}"
names=(access error "slow queries")

usage() {
  cat <<'TEXT'
usage: rotate [FOLDER]
It's safe to run it twice.
TEXT
}

rotate() {
  local name=$1 count=0
  for file in "$folder/$name".*.gz; do
    if [ -f "$file" ]; then
      count=$((count + 1))
    fi
  done
  while (( count > keep )); do
    oldest=$(ls -t "$folder" | grep "^$name" | tail -n 1)
    rm -f -- "$folder/$oldest" && count=$((count - 1))
  done
  gzip -c "$folder/$name" > "$folder/$name.$(date +%s).gz"
}

case "${2:-run}" in
  run) echo "rotating ${#names[@]} logs" ;;
  help | --help)
    usage
    exit 0
    ;;
  *) exit 2 ;;
esac

for name in "${names[@]}"; do
  [[ -s "$folder/$name" ]] || continue
  rotate "$name" || echo "cannot rotate '$name'" >&2
done
