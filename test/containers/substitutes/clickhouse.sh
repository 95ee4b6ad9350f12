#!/bin/bash
# Runs the ClickHouse engine of the local stack, which stops when its standard input ends.
set -e
data=/var/lib/clickhouse
if [ "$(id -u)" = 0 ]; then
  mkdir -p $data/data
  chown clickhouse:clickhouse $data $data/data
  exec setpriv --reuid clickhouse --regid clickhouse --clear-groups "$0"
fi
listen=HTTP
[ -z "$CLICKHOUSE_CLUSTER" ] || listen='QUERIES ALL'
exec 3> >(TERM=dumb exec node /opt/clickhouse/clickhouse-engine.ts /opt/clickhouse/libchdb.so $data/data \
  "SYSTEM START LISTEN $listen" --interactive --disable_suggestion --config-file /etc/clickhouse-server/config.xml \
  --path $data/data --listen_host 0.0.0.0 --http_port 8123 --tcp_port 9000 --history_file $data/history --progress 0)
engine=$!
trap 'exec 3>&-' TERM INT
wait $engine || wait $engine
