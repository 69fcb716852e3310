#!/usr/bin/env bash
# All benchmarks of speed and memory that need no other program. Takes about a quarter of an hour on 2 cores.
# usage: bench/run.sh BUILD_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build_dir=$1
echo "== pool moves, tier bandwidth, verification"
"$build_dir/bench/tier_bench"
echo "== training under a budget"
python3 "$here/budget.py" "$build_dir/penstock" --policies window,lms
echo "== pools"
python3 "$here/pools.py" "$build_dir/penstock"
