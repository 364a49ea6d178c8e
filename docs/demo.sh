#!/usr/bin/env bash
# The main job on a real script: migrate it, see the diff, train on two processes, prove that it trains the same model.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

out=demo-out
rm -rf "$out"
mkdir -p "$out/digits"
cp -r fixtures/scripts/data "$out/data"
cp fixtures/scripts/smddp_mnist/before.py "$out/digits/train.py"
cp "$out/digits/train.py" "$out/digits/train_on_one_gpu.py"
cd "$out/digits"

step() { printf '\n\n== %s\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

step "A training script for one GPU: 1,797 handwritten digits, Keras model, tf.function step, Adam ($out/digits/train.py)"
step "1. What would change (nothing is written; exit status 1 says that something would)"
status=0
show tfdp migrate --diff train.py || status=$?
[ "$status" = 1 ] || { echo "demo: expected exit status 1 of tfdp migrate --diff, got $status" >&2; exit 1; }

step "2. Migrate it in place"
show tfdp migrate train.py

step "3. Train on two processes"
show tfdp run -np 2 train.py

step "4. Prove it: the original in one process against two with their rows of its batches, step by step, from the same variables"
show tfdp verify train.py --against train_on_one_gpu.py -np 2 --steps 10 --html proof.html
echo
echo "The same with the batches and learning rates of both, migrated in memory:"
show tfdp verify train_on_one_gpu.py -np 2 --steps 10 --batch per-worker
echo
echo "The migrated script is $out/digits/train.py, the original train_on_one_gpu.py beside it; $out/digits/proof.html shows the proof."
