#!/usr/bin/env bash
# All policies under four budgets on five networks: `penstock bench` for each, whose pages and figures go to BUILD_DIR/bench-results.
# Takes about two hours on 2 cores. usage: bench/policies.sh BUILD_DIR [MODEL ...]
set -euo pipefail
build_dir=$1
shift
results=$build_dir/bench-results
mkdir -p "$results"
declare -A batch=([resnet50]=32 [vgg16]=16 [densenet121]=32 [inception-v4]=16 [unet]=8)
declare -A budgets=([resnet50]=512MiB,768MiB,1GiB,1536MiB [vgg16]=896MiB,1GiB,1280MiB,1536MiB
  [densenet121]=512MiB,768MiB,1GiB,1536MiB [inception-v4]=512MiB,768MiB,1GiB,1536MiB [unet]=768MiB,1GiB,1280MiB,1536MiB)
for model in "${@:-resnet50 vgg16 densenet121 inception-v4 unet}"; do
  for name in $model; do
    "$build_dir/penstock" bench "$name" --batch "${batch[$name]}" --budgets "${budgets[$name]}" --steps 3 --repeat 2 --lr 0.01 \
      --json "$results/$name.json" --report "$results/$name.html"
  done
done
