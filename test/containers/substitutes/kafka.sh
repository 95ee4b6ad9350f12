#!/bin/bash
# KafkaDockerWrapper, which is part of Kafka's jars, converts KAFKA_… variables to settings and formats the data folder.
set -e
log4j=-Dlog4j2.configurationFile=/etc/kafka/docker/log4j2.properties
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
output=$(java "$log4j" -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) ||
  echo "$output" | grep -i 'already formatted' || { echo "$output"; exit 1; }
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xmx1G} "$log4j" -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
