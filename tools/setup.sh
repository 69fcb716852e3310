#!/usr/bin/env bash
# Installs what the build needs and is missing: Debian packages (as root), and oneDNN 3 from PyPI into DEPS_DIR.
# usage: tools/setup.sh DEPS_DIR [PACKAGE_LIST ...]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
deps_dir=$1
shift
lists=("$here/packages.txt")
for list in "$@"; do lists+=("$here/$list"); done
onednn_version=2023.2.0

missing=()
for package in $(cat "${lists[@]}"); do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done

# A tool that is on the PATH, though not from its Debian package, will do.
still_missing=()
for package in "${missing[@]}"; do
  case $package in
    cmake|pkg-config|g++|python3|clang-format|clang-tidy) command -v "$package" >/dev/null && continue ;;
    ninja-build) command -v ninja >/dev/null && continue ;;
    python3-venv) python3 -c 'import ensurepip' >/dev/null 2>&1 && continue ;;
    python3-dev) [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h" ] && continue ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 && continue ;;
  esac
  still_missing+=("$package")
done

if [ ${#still_missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "setup: missing Debian packages: ${still_missing[*]}; run 'apt-get install ${still_missing[*]}' as root" >&2
    exit 2
  fi
  echo "setup: installing ${still_missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${still_missing[@]}" >/dev/null
fi

# A system oneDNN 3 is used by CMake where there is one; otherwise the wheels are unpacked below DEPS_DIR.
if [ -e "$deps_dir/lib/cmake/dnnl/dnnl-config.cmake" ] && [ -e "$deps_dir/lib/libdnnl.so.3" ]; then exit 0; fi
if compgen -G '/usr/lib/*/cmake/dnnl/dnnl-config-version.cmake' >/dev/null &&
   grep -qh 'PACKAGE_VERSION "3' /usr/lib/*/cmake/dnnl/dnnl-config-version.cmake; then exit 0; fi

echo "setup: fetching oneDNN (wheels onednn-cpu-gomp, onednn-devel-cpu-gomp $onednn_version)"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$wheels" \
  "onednn-cpu-gomp==$onednn_version" "onednn-devel-cpu-gomp==$onednn_version"
mkdir -p "$deps_dir"
python3 - "$wheels" "$deps_dir" <<'PY'
import pathlib, sys, zipfile

wheels, target = map(pathlib.Path, sys.argv[1:])
for wheel in wheels.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            inside = name.partition(".data/data/")[2]
            if not inside or inside.endswith("/") or inside in ("lib/libdnnl.so", "lib/libdnnl.so.3"):
                continue
            path = target / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
# The wheel ships three copies of the library; two of them are meant to be links.
for link, to in (("libdnnl.so.3", "libdnnl.so.3.2"), ("libdnnl.so", "libdnnl.so.3")):
    path = target / "lib" / link
    path.unlink(missing_ok=True)
    path.symlink_to(to)
PY
