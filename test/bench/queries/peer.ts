import type { Engine } from '../clickhouse.ts';

/**
 * The schema of the best-known open-source product analytics on ClickHouse. A row has the person as known when the event
 * arrived; later merges of persons are in a table of overrides. Copies fold only during merges.
 */
const EVENTS = `CREATE TABLE bench_peer_events
(
    uuid UUID, event LowCardinality(String), properties String CODEC(ZSTD(3)), timestamp DateTime64(6, 'UTC'), team_id Int64,
    distinct_id String, created_at DateTime64(6, 'UTC'), person_id UUID,
    session_id String MATERIALIZED JSONExtractString(properties, '$session_id'),
    current_url String MATERIALIZED JSONExtractString(properties, '$current_url'),
    pathname String MATERIALIZED JSONExtractString(properties, '$pathname'),
    _timestamp DateTime, _offset UInt64, _partition UInt64,
    INDEX kafka_timestamp _timestamp TYPE minmax GRANULARITY 3,
    INDEX of_session session_id TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(_timestamp)
PARTITION BY toYYYYMM(timestamp)
ORDER BY (team_id, toDate(timestamp), event, cityHash64(distinct_id), cityHash64(uuid))
SAMPLE BY cityHash64(distinct_id)`;

const OVERRIDES = `CREATE TABLE bench_peer_overrides
(team_id Int64, distinct_id String, person_id UUID, version Int64)
ENGINE = ReplacingMergeTree(version) ORDER BY (team_id, distinct_id) SETTINGS index_granularity = 512`;

const TEAM = 1;

export async function createPeerTables(engine: Engine): Promise<void> {
  await engine.query(EVENTS);
  await engine.query(OVERRIDES);
}

/** @param rows a query as `rowsOf` returns it */
export async function fillPeerEvents(engine: Engine, rows: string, settings: string): Promise<void> {
  await engine.query(`INSERT INTO bench_peer_events (uuid, event, properties, timestamp, team_id, distinct_id, created_at, person_id,
    _timestamp, _offset, _partition)
  SELECT message_id, if(event_name = '', '$pageview', event_name),
    concat('{"$session_id":"', session_id, '","$current_url":"', page_url, '","$pathname":"', page_path, '","$referrer":"', page_referrer,
      '","$lib":"', surface, '","$lib_version":"2.5.0","$locale":"en-US","$raw_user_agent":"Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0",', substring(properties, 2)),
    event_time, ${TEAM}, if(user_id = '', anonymous_id, user_id), received_at, reinterpretAsUUID(identity_key),
    received_at, intDiv(number, 6), number % 6
  FROM (${rows}) ${settings}`);
}

/** @param rows members of persons. Only members that belong to another person get an override */
export async function fillPeerOverrides(engine: Engine, rows: string): Promise<void> {
  await engine.query(`INSERT INTO bench_peer_overrides (team_id, distinct_id, person_id, version)
    SELECT ${TEAM}, id, reinterpretAsUUID(person_key), version FROM (${rows}) WHERE identity_key != person_key`);
}

/** Rows of the peer with the column names of `events`. @param people joins the person */
export function peerRows({ where, people }: { where: string; people: boolean }): string {
  const columns = `event.uuid AS message_id, event.event AS event_name, event.timestamp AS event_time, event.session_id AS session_id,
    event.pathname AS page_path, event.current_url AS page_url, event.properties AS properties, event.distinct_id AS distinct_id`;
  const rows = `bench_peer_events AS event`;
  const filter = `WHERE event.team_id = ${TEAM}${where === '' ? '' : ` AND ${where}`}`;
  if (!people) return `(SELECT ${columns} FROM ${rows} ${filter})`;
  return `(SELECT ${columns}, if(notEmpty(override.distinct_id), override.person_id, event.person_id) AS person
    FROM ${rows} LEFT OUTER JOIN (
      SELECT argMax(person_id, version) AS person_id, distinct_id FROM bench_peer_overrides WHERE team_id = ${TEAM} GROUP BY distinct_id
    ) AS override ON event.distinct_id = override.distinct_id ${filter})`;
}
