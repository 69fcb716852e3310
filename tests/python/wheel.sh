#!/usr/bin/env bash
# The package as its users get it: makes a wheel (`make wheel`) and installs it into a fresh virtual environment, which must then train, save, and have
# the program; with --source also what `pip install .` installs. Takes some minutes, because each compiles all of Penstock.
# usage: tests/python/wheel.sh [--source]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What a user does first, outside of the source tree so that nothing is found by chance.
try() {
  local python=$1/bin/python
  (
    cd "$folder"
    unset PYTHONPATH LD_LIBRARY_PATH
    "$python" - <<'PYTHON'
import os
import numpy as np
import penstock as ps

folder = os.path.dirname(ps.__file__)
assert "site-packages" in folder, folder
for name in ("py.typed", "_core.pyi", "bin/penstock", "lib/libdnnl.so.3"):
    assert os.path.exists(os.path.join(folder, name)), f"the package has no {name}"
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "libdnnl" in line}
assert loaded == {os.path.join(folder, "lib/libdnnl.so.3")}, f"oneDNN is {loaded}, not the package's own"
images, labels = np.random.default_rng(0).random((16, 1, 28, 28), np.float32), np.arange(16) % 10
with ps.Session("lenet", batch=16, memory="64MiB", optimizer=ps.SGD(lr=0.1)) as session:
    losses = [session.step(images, labels) for _ in range(20)]
    session.save("lenet.safetensors")
assert losses[-1] < losses[0], losses
print(f"trained: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
PYTHON
    "$1/bin/penstock" --version
    "$1/bin/penstock" train lenet --batch 4 --steps 2 --memory 64MiB --quiet
    status=0
    "$1/bin/penstock" train lenet --memory much >out.txt 2>&1 || status=$?
    [ "$status" -eq 2 ] || { echo "wheel.sh: bad input ended with $status, not 2" >&2; exit 1; }
  )
}

rm -rf build/wheels
make --no-print-directory wheel
python3 -m venv "$folder/wheel"
"$folder/wheel/bin/pip" install --quiet --disable-pip-version-check build/wheels/penstock-*.whl
try "$folder/wheel"
echo "wheel: passed"
if [ "${1:-}" = --source ]; then
  python3 -m venv "$folder/source"
  "$folder/source/bin/pip" install --quiet --disable-pip-version-check .
  try "$folder/source"
  echo "pip install .: passed"
fi
