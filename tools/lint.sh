#!/usr/bin/env bash
# Checks the format of every source file and runs clang-tidy over every compiled one.
# usage: tools/lint.sh BUILD_DIR JOBS
set -euo pipefail
build_dir=$1
jobs=$2
git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format --dry-run --Werror
# GCC's options that clang does not know would be errors under -Werror.
git ls-files -co --exclude-standard 'src/*.cpp' |
  xargs -P "$jobs" -n 4 clang-tidy --quiet -p "$build_dir" \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas 2>/dev/null
echo "lint: clean"
