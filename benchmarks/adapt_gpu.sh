#!/bin/sh
# Adapt an imported network in short jobs on a GPU machine that keeps nothing and reaches nothing: what goes there and
# comes back are parts of at most 15 MiB. Needs a clone there, and in its Python torch, transformers, accelerate, peft.
#
#   adapt_gpu.sh pack BASE WORK PARTS           here: the checkpoint (a folder, or a GGUF file) and a corpus, as PARTS/part.*
#   adapt_gpu.sh keep PARTS WORK                there, where a call brings only some of the parts: lay them aside
#   adapt_gpu.sh job WORK OUT SECONDS OPTION... there: unpack, train on from OUT/state.* where they are, leave OUT/state.*
#   adapt_gpu.sh take WORK OUT TO OPTION...     here: the checkpoint TO out of the state that came back
#
# SECONDS: of this job. OPTION goes to `dg-lsp train`: --minutes, those of all jobs together, and such as --lora 16.
set -eu
python=${PYTHON:-python3}
verb=$1
shift
case $verb in
pack)
    base=$1 work=$2 parts=$3
    mkdir -p "$work" "$parts"
    case $base in *.gguf)
        "$python" -P -m dg_lsp import "$base" --out "$work/base.made"
        cp "$base" "$work/base.gguf"
        mkdir -p "$work/library"
        cp -r "$("$python" -P -c 'import gguf, os; print(os.path.dirname(gguf.__file__))')" "$work/library/"
        tokenizer=$work/base.made ;;
    *)
        rm -rf "$work/base.made" && cp -r "$base" "$work/base.made"
        tokenizer=$base ;;
    esac
    [ -f "$work/corpus.npz" ] || "$python" -P -c '
import pathlib, sys, sysconfig
from tokenizers import Tokenizer
from dg_lsp.training import corpus
packages = [pathlib.Path(sysconfig.get_path("purelib"))]
corpus.prepare(pathlib.Path(sys.argv[1]), packages, Tokenizer.from_file(sys.argv[2] + "/tokenizer.json"))
' "$work" "$tokenizer"
    what=base.made
    [ -f "$work/base.gguf" ] && what="base.gguf library"
    # shellcheck disable=SC2086  (the names hold no blanks)
    tar -C "$work" -cf - $what tokenizer.json corpus.npz heldout.npz | split -b 15m - "$parts/part."
    ls -l "$parts" ;;
keep)
    mkdir -p "$2"
    cp "$1"/part.* "$2/" ;;
job)
    work=$1 out=$2 seconds=$3
    shift 3
    mkdir -p "$out"
    [ -f "$work/corpus.npz" ] || cat "$work"/part.* | tar -C "$work" -xf -
    export PYTHONPATH="$work/library${PYTHONPATH:+:$PYTHONPATH}"
    [ -d "$work/base.made" ] || "$python" -m dg_lsp import "$work/base.gguf" --out "$work/base.made"
    again=
    if [ -f "$out/state.aa" ]; then
        cat "$out"/state.* | tar -C "$work" -xf -
        again=--resume
    fi
    # SIGTERM ends the training at the next step, with a state.
    # shellcheck disable=SC2086
    timeout --signal=TERM "$seconds" "$python" -m dg_lsp train --from "$work/base.made" --out "$work" $again "$@" \
        || [ $? = 124 ]
    rm -f "$out"/state.*
    tar -C "$work" -cf - state.safetensors log.jsonl | split -b 15m - "$out/state."
    tail -n 1 "$work/log.jsonl" ;;
take)
    cat "$2"/state.* | tar -C "$1" -xf -
    work=$1 to=$3
    shift 3
    "$python" -P -m dg_lsp train --from "$work/base.made" --out "$work" --export "$to" "$@" ;;
*)
    sed -n '2,12p' "$0"
    exit 2 ;;
esac
