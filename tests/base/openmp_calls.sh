#!/usr/bin/env bash
# Every function of OpenMP's that the kernels and oneDNN call is one that base/openmp.cpp defines, because a directive
# that libgomp handles and one that a Team handles do not know of each other. (A `parallel` that has a
# `for schedule(dynamic)` and nothing else in it is such a function of its own.)
# usage: openmp_calls.sh PROGRAM ONEDNN BASE_LIBRARY KERNELS_LIBRARY
set -euo pipefail

# Says how many threads libgomp has; a ThreadScope calls it itself.
allowed=omp_set_num_threads
defined=$(nm --defined-only "$3" | awk '$2 == "T" && $3 ~ /^(GOMP|omp)_/ { print $3 }')
[ -n "$defined" ] || { echo "openmp_calls: $3 defines none of OpenMP's functions"; exit 1; }
called=$({ nm -D --undefined-only "$2"; nm --undefined-only "$4"; nm -D --undefined-only "$1"; } |
  awk '{ sub(/@.*/, "", $NF) } $NF ~ /^(GOMP|omp)_/ { print $NF }' | sort -u)
missing=$(comm -23 <(echo "$called") <(printf '%s\n' $defined $allowed | sort -u))
if [ -n "$missing" ]; then
  echo "openmp_calls: called, but not defined in base/openmp.cpp:" $missing
  exit 1
fi
echo "openmp_calls: all $(echo "$called" | wc -l) are defined"
