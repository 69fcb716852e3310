#!/usr/bin/env bash
# All benchmarks of speed and memory that need no other program. Takes about three hours on 2 cores; each part can be run by itself.
# usage: bench/run.sh BUILD_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build_dir=$1
echo "== pool moves, tier bandwidth, verification"
"$build_dir/bench/tier_bench"
echo "== the planner: its time over the size of the step, its distance from the optimum of small ones"
"$build_dir/bench/planner_bench" curve
"$build_dir/bench/planner_bench" optimum
echo "== larger batches under the same budget"
python3 "$here/same_budget.py" "$build_dir/penstock"
echo "== a slow link, policies over bandwidths"
python3 "$here/bandwidths.py" "$build_dir/penstock"
echo "== policies, budgets, networks"
python3 "$here/policies.py" "$build_dir/penstock" --results "$build_dir/bench-results"
echo "== pools"
python3 "$here/pools.py" "$build_dir/penstock"
echo "== does plan say what train does"
python3 "$here/plan_check.py" "$build_dir/penstock"
echo "== ranks"
python3 "$here/scaling.py" "$build_dir/penstock"
