#!/bin/sh
# Like the original, changes to the user redis only for redis-server.
set -e
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown -R redis .
  exec setpriv --reuid redis --regid redis --init-groups "$0" "$@"
fi
exec "$@"
