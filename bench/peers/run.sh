#!/usr/bin/env bash
# Sets up PyTorch in a virtual environment of its own (about 5 GB) and compares Penstock with it.
# usage: bench/peers/run.sh BUILD_DIR [compare.py's options]; PENSTOCK_PEERS_VENV names an environment that is there already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build_dir=$1
shift
venv=${PENSTOCK_PEERS_VENV:-$build_dir/peers-venv}
if ! "$venv/bin/python" -c 'import torch, torchvision' 2>/dev/null; then
  echo "bench-peers: installing PyTorch into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check torch torchvision safetensors numpy
fi
"$venv/bin/python" "$here/compare.py" --penstock "$build_dir/penstock" --json "$build_dir/peers.json" "$@"
"$venv/bin/python" "$here/saving_memory.py" --penstock "$build_dir/penstock" --json "$build_dir/saving_memory.json"
