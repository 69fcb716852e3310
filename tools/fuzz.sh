#!/usr/bin/env bash
# Builds the fuzzers with clang and runs each for some seconds, JOBS at a time, from the corpus of the repository; what
# they find new goes to BUILD_DIR/corpus, what breaks to BUILD_DIR/found. FUZZ_SEED=1 makes them begin alike each time.
# usage: tools/fuzz.sh BUILD_DIR SECONDS JOBS [TARGET ...]
set -euo pipefail
build_dir=$1
seconds=$2
jobs=$3
shift 3
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
for target in "${targets[@]}"; do
  if [ ! -d "tests/fuzz/corpus/$target" ]; then
    echo "fuzz: there is no target $target; there are: $(ls tests/fuzz/corpus | xargs)" >&2
    exit 2
  fi
done
export source_dir=$PWD seconds
mkdir -p "$build_dir/found"
cmake -S tests/fuzz -B "$build_dir" -G Ninja -DCMAKE_CXX_COMPILER=clang++ >"$build_dir/configure.log" 2>&1 ||
  { cat "$build_dir/configure.log"; exit 1; }
cmake --build "$build_dir" -j "$jobs"
cd "$build_dir"

fuzz_one() {
  local target=$1 dictionary=() failed=0
  local log=found/$target.log
  mkdir -p "corpus/$target"
  if [ -f "$source_dir/tests/fuzz/$target.dict" ]; then dictionary=("-dict=$source_dir/tests/fuzz/$target.dict"); fi
  # No input may take more than a gigabyte or ten seconds, and most take none of either.
  PENSTOCK_FUZZ_TARGET=$target ./penstock_fuzz "corpus/$target" "$source_dir/tests/fuzz/corpus/$target" \
    -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=10 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="found/$target-" ${FUZZ_SEED:+-seed="$FUZZ_SEED"} "${dictionary[@]}" >"$log" 2>&1 || failed=1
  if [ $failed = 1 ]; then
    tail -n 40 "$log"
    echo "fuzz: $target failed"
    return 1
  fi
  # The processor's time that the fuzzer took is the second line of what times says in this very shell, of children.
  times >"$log.times"
  awk -v target="$target" -v spent="$(sed -n 2p "$log.times")" '
    function in_seconds(text) { split(text, part, /[ms]/); return 60 * part[1] + part[2] }
    / cov: /                          { for (i = 1; i < NF; ++i) if ($i == "cov:") covered = $(i + 1) }
    /stat::number_of_executed_units:/ { executed = $2 }
    /stat::peak_rss_mb:/              { peak = $2 }
    END {
      split(spent, time, " ")
      printf "fuzz: %-12s %6.0f s of processor time, %12s executions, %6s edges, peak %s MB\n",
             target, in_seconds(time[1]) + in_seconds(time[2]), executed, covered, peak
    }' "$log"
}
export -f fuzz_one
# Each in a shell of its own, so that times speaks of it alone.
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; fuzz_one {}'
