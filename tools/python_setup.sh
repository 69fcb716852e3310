#!/usr/bin/env bash
# Makes a virtual environment with the packages that a list names, unless it is there with just these.
# usage: tools/python_setup.sh VENV_DIR REQUIREMENTS [PIP_OPTION ...]
set -euo pipefail
venv=$1
requirements=$2
shift 2
if cmp -s "$requirements" "$venv/requirements.txt"; then exit 0; fi
echo "setup: fetching Python packages into $venv: $(tr '\n' ' ' <"$requirements")"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" -r "$requirements"
cp "$requirements" "$venv/requirements.txt"
