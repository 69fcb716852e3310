#!/usr/bin/env bash
# Text: trains a small GPT on the texts of Debian's package fortunes, byte by byte, under a memory budget of half of
# what it needs, and lets it write.
# usage: examples/demo_text.sh PENSTOCK
set -euo pipefail
penstock=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

(cd /usr/share/games/fortunes && cat computers definitions literature science songs-poems wisdom work) >"$folder/text"
cat >"$folder/config.json" <<'JSON'
{"model_type": "gpt2", "n_layer": 4, "n_head": 4, "n_embd": 128, "n_positions": 128, "vocab_size": 256,
 "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
JSON

echo "Training a GPT of 4 layers on $(wc -c <"$folder/text") bytes of text:"
"$penstock" train "$folder/config.json" --data "text:$folder/text" --batch 16 --accumulate 2 --steps 1400 \
  --optimizer adamw --lr 3e-3 --betas 0.9,0.99 --weight-decay 0.1 --decay matrices --clip 1 \
  --schedule cosine,warmup:70 --memory 64MiB --evaluate --save "$folder/weights.safetensors"
echo "What it writes:"
"$penstock" generate "$folder/config.json" --init "$folder/weights.safetensors" --prompt "The " --tokens 110 \
  --temperature 0.7 --top-k 20
