#!/usr/bin/env bash
# Installs the package into a folder of its own, builds an example against it and runs it.
# usage: run.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$1" --prefix "$folder/installed" >/dev/null
cmake -S "$2/examples/two_inputs" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/installed" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$folder/build" >/dev/null
"$folder/build/two_inputs"
for header in "$folder"/installed/include/penstock/*.h; do
  echo "#include \"$header\"" | c++ -std=c++20 -fsyntax-only -I"$folder/installed/include" -x c++ - || exit 1
done
