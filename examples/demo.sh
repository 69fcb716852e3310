#!/usr/bin/env bash
# The main job: trains a residual network on Fashion-MNIST under a memory budget several times smaller than it needs.
# usage: examples/demo.sh PENSTOCK
set -euo pipefail
penstock=$1
echo "Training a residual network on Fashion-MNIST (60,000 images of clothing, 10 classes):"
"$penstock" train resnet20 --data fashion-mnist --batch 256 --steps 430 --lr 0.2 --weight-decay 5e-4 \
  --schedule cosine,warmup:40 --memory 160MiB --evaluate
