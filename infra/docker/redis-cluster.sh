#!/bin/sh
# Makes the nodes of the profile `cluster` a Redis Cluster: the first three get the slots, and each other node becomes a
# replica of one of them. Can be repeated: nodes that have slots or a primary do not change.
set -eu
export REDISCLI_AUTH="$REDIS_PASSWORD"
# shellcheck disable=SC2046
set -- $(echo "$REDIS_NODES" | tr , ' ')
primaries="$1 $2 $3"
ask() { node=$1 && shift && redis-cli -h "${node%:*}" -p "${node#*:}" cluster "$@"; }

if ! ask "$1" info | grep -q cluster_slots_assigned:16384; then
  ask "$1" addslotsrange 0 5460
  ask "$2" addslotsrange 5461 10922
  ask "$3" addslotsrange 10923 16383
fi
shift 3
for primary in $primaries; do
  # Only a node without slots ends its own line with its state.
  if ask "$1" nodes | grep -q 'myself,master.* connected$'; then
    until ask "$1" replicate "$(ask "$primary" myid)" | grep -q OK; do sleep 1; done
  fi
  shift
done
for node in $(echo "$REDIS_NODES" | tr , ' '); do
  until ask "$node" info | grep -q cluster_state:ok; do sleep 1; done
done
