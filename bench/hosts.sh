#!/usr/bin/env bash
# Runs a command in two network namespaces that are joined by a link of limited bandwidth, as if on two hosts.
# usage: hosts.sh RATE (100mbit, 1gbit, ...) PENSTOCK_ARGUMENT ...
# The program is $PENSTOCK. Ends with exit code 77 where namespaces are not permitted.
set -euo pipefail
rate=$1
shift
name=penstock$$
first=${name}a
second=${name}b
folder=$(mktemp -d)
cleanup() {
  ip netns del "$first" 2>/dev/null || true
  ip netns del "$second" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
command -v ip >/dev/null && command -v tc >/dev/null && command -v mpirun >/dev/null &&
  ip netns add "$first" 2>/dev/null && ip netns add "$second" 2>/dev/null ||
  { echo "hosts: no network namespaces here" >&2; exit 77; }
ip link add v0 netns "$first" type veth peer name v1 netns "$second"
ip -n "$first" address add 10.213.7.1/24 dev v0
ip -n "$second" address add 10.213.7.2/24 dev v1
for namespace in "$first" "$second"; do ip -n "$namespace" link set lo up; done
ip -n "$first" link set v0 up
ip -n "$second" link set v1 up
ip netns exec "$first" tc qdisc add dev v0 root tbf rate "$rate" burst 256kb latency 50ms
ip netns exec "$second" tc qdisc add dev v1 root tbf rate "$rate" burst 256kb latency 50ms
# mpirun starts its daemon on the other host with this in place of ssh: HOST COMMAND...
cat >"$folder/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $second sh -c "\$*"
AGENT
chmod +x "$folder/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ip netns exec "$first" mpirun -n 2 --host 10.213.7.1,10.213.7.2 --map-by node --bind-to none \
  --mca plm_rsh_agent "$folder/agent" --mca orte_keep_fqdn_hostnames 1 --mca btl tcp,self \
  --mca btl_tcp_if_include 10.213.7.0/24 --mca oob_tcp_if_include 10.213.7.0/24 \
  -x OMP_NUM_THREADS -x XDG_CACHE_HOME "$PENSTOCK" "$@"
