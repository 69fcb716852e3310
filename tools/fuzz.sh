#!/usr/bin/env bash
# Builds the fuzzers with clang and runs each for some seconds, from the corpus of the repository; what it finds
# new goes to BUILD_DIR/corpus, what breaks to BUILD_DIR/found.
# usage: tools/fuzz.sh BUILD_DIR SECONDS JOBS [TARGET ...]
set -euo pipefail
build_dir=$1
seconds=$2
jobs=$3
shift 3
targets=("$@")
source_dir=$PWD
mkdir -p "$build_dir/found"
cmake -S tests/fuzz -B "$build_dir" -G Ninja -DCMAKE_CXX_COMPILER=clang++ >"$build_dir/configure.log" 2>&1 ||
  { cat "$build_dir/configure.log"; exit 1; }
cmake --build "$build_dir" -j "$jobs"
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
cd "$build_dir"
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target"
  dictionary=()
  if [ -f "$source_dir/tests/fuzz/$target.dict" ]; then dictionary=("-dict=$source_dir/tests/fuzz/$target.dict"); fi
  # No input may take more than a gigabyte or ten seconds, and most take none of either.
  PENSTOCK_FUZZ_TARGET=$target ./penstock_fuzz "corpus/$target" "$source_dir/tests/fuzz/corpus/$target" \
    -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=10 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="found/$target-" "${dictionary[@]}" >"found/$target.log" 2>&1 ||
    { tail -n 40 "found/$target.log"; echo "fuzz: $target failed"; exit 1; }
  awk -v target="$target" '
    / cov: /                          { for (i = 1; i < NF; ++i) if ($i == "cov:") covered = $(i + 1) }
    /stat::number_of_executed_units:/ { executed = $2 }
    /stat::peak_rss_mb:/              { peak = $2 }
    END { printf "fuzz: %-12s %12s executions, %6s edges, peak %s MB\n", target, executed, covered, peak }' "found/$target.log"
done
