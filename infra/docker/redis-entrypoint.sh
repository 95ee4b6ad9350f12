#!/bin/sh
# Writes the configuration to a file, because every user of the host can read command lines. The image's entrypoint
# changes to an unprivileged user only before it runs redis-server.
set -eu
umask 077
cp /playline/redis/redis.conf /etc/redis.conf
echo "requirepass $REDIS_PASSWORD" >> /etc/redis.conf
if [ "$REDIS_CLUSTER" = true ]; then
  {
    cat /playline/redis/cluster.conf
    echo "masterauth $REDIS_PASSWORD"
    # Containers can get other addresses when they start again, but keep their names.
    echo "cluster-announce-hostname $REDIS_NODE"
    echo "cluster-preferred-endpoint-type hostname"
  } >> /etc/redis.conf
  # The other nodes cannot find a node with another address, if their own addresses have changed as well.
  (
    export REDISCLI_AUTH="$REDIS_PASSWORD"
    for node in $(echo "$REDIS_NODES" | tr , ' '); do
      until address=$(getent hosts "${node%:*}") && redis-cli cluster meet "${address%% *}" "${node#*:}" | grep -q OK; do
        sleep 1
      done
    done
  ) &
fi
chown redis /etc/redis.conf
exec docker-entrypoint.sh redis-server /etc/redis.conf --maxmemory 384mb
