#!/usr/bin/env bash
# Checks the format of every source file and runs clang-tidy over every compiled one.
# Files are looked at several at a time, as the build tree joins them: most of the time goes into the headers they share.
# usage: tools/lint.sh BUILD_DIR JOBS
set -euo pipefail
build_dir=$1
jobs=$2
git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format --dry-run --Werror
# GCC's options that clang does not know would be errors under -Werror.
python3 - "$build_dir" <<'PY' |
import json, pathlib, sys

build = pathlib.Path(sys.argv[1]).resolve()
for entry in json.loads((build / "compile_commands.json").read_text()):
    file = pathlib.Path(entry["file"])
    if any(file.is_relative_to(folder / "src") for folder in (build, pathlib.Path.cwd())):
        print(file)
PY
  xargs -P "$jobs" -n 1 clang-tidy --quiet -p "$build_dir" --checks=-bugprone-suspicious-include \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas 2>/dev/null
echo "lint: clean"
