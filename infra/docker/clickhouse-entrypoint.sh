#!/bin/sh
# Copies the configuration, then hashes the passwords for users.xml, because services read the passwords from the same
# variables.
set -eu
install -m 644 /playline/clickhouse/users.xml /etc/clickhouse-server/users.xml
for name in system-logs named-collections caches server-log; do
  install -D -m 644 "/playline/clickhouse/$name.xml" "/etc/clickhouse-server/config.d/$name.xml"
done
if [ -n "$CLICKHOUSE_CLUSTER" ]; then
  install -m 644 /playline/docker/clickhouse-cluster.xml /etc/clickhouse-server/config.d/cluster.xml
  install -D -m 644 /playline/clickhouse/cluster-users.xml /etc/clickhouse-server/users.d/cluster-users.xml
  [ "$CLICKHOUSE_NODE" = clickhouse ] ||
    install -m 644 /playline/clickhouse/shard-users.xml /etc/clickhouse-server/users.d/shard-users.xml
fi
hash() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
CLICKHOUSE_OPERATOR_SHA256=$(hash "$CLICKHOUSE_OPERATOR_PASSWORD")
CLICKHOUSE_WRITER_SHA256=$(hash "$CLICKHOUSE_WRITER_PASSWORD")
CLICKHOUSE_READER_SHA256=$(hash "$CLICKHOUSE_READER_PASSWORD")
CLICKHOUSE_PORTAL_SHA256=$(hash "$CLICKHOUSE_PORTAL_PASSWORD")
CLICKHOUSE_ACCOUNTS_SHA256=$(hash "$CLICKHOUSE_ACCOUNTS_PASSWORD")
CLICKHOUSE_ANALYST_SHA256=$(hash "$CLICKHOUSE_ANALYST_PASSWORD")
# The server also needs the password of `views`, because dictionaries log in with it.
CLICKHOUSE_VIEWS_SHA256=$(hash "$CLICKHOUSE_VIEWS_PASSWORD")
export CLICKHOUSE_OPERATOR_SHA256 CLICKHOUSE_WRITER_SHA256 CLICKHOUSE_READER_SHA256 CLICKHOUSE_ANALYST_SHA256
export CLICKHOUSE_VIEWS_SHA256 CLICKHOUSE_PORTAL_SHA256 CLICKHOUSE_ACCOUNTS_SHA256
unset CLICKHOUSE_OPERATOR_PASSWORD CLICKHOUSE_WRITER_PASSWORD CLICKHOUSE_READER_PASSWORD CLICKHOUSE_ANALYST_PASSWORD
unset CLICKHOUSE_PORTAL_PASSWORD CLICKHOUSE_ACCOUNTS_PASSWORD
# On this server, `analysts create` creates accounts with SQL. users.xml also defines accounts for servers without CREATE USER.
# These accounts get random passwords, unless their passwords are set.
for account in ANALYST_1 ANALYST_2 ANALYST_3 ANALYST_4 ANALYST_5 ANALYST_6 ANALYST_7 ANALYST_8 \
  ANALYST_RAW_1 ANALYST_RAW_2 ANALYST_RAW_3 ANALYST_RAW_4; do
  eval "password=\${CLICKHOUSE_${account}_PASSWORD:-}"
  [ -n "$password" ] || password=$(head -c 32 /dev/urandom | sha256sum)
  export "CLICKHOUSE_${account}_SHA256=$(hash "$password")"
  unset "CLICKHOUSE_${account}_PASSWORD" password
done
exec /entrypoint.sh "$@"
