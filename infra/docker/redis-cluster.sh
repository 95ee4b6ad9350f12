#!/bin/sh
# Makes the nodes of the profile `cluster` a Redis Cluster: the first three get the slots, and each other node becomes a
# replica of one of them. Can be repeated: nodes that have slots or a primary do not change.
set -eu
export REDISCLI_AUTH="$REDIS_PASSWORD"
# shellcheck disable=SC2046
set -- $(echo "$REDIS_NODES" | tr , ' ')
primaries="$1 $2 $3"
cluster() { node=$1 && shift && redis-cli -h "${node%:*}" -p "${node#*:}" cluster "$@"; }

if ! cluster "$1" info | grep -q cluster_slots_assigned:16384; then
  cluster "$1" addslotsrange 0 5460
  cluster "$2" addslotsrange 5461 10922
  cluster "$3" addslotsrange 10923 16383
fi
shift 3
for primary in $primaries; do
  # Only a node without slots ends its own line with its state.
  if cluster "$1" nodes | grep -q 'myself,master.* connected$'; then
    until cluster "$1" replicate "$(cluster "$primary" myid)" | grep -q OK; do sleep 1; done
  fi
  shift
done
for node in $(echo "$REDIS_NODES" | tr , ' '); do
  until cluster "$node" info | grep -q cluster_state:ok; do sleep 1; done
done
