import { createEngine, type Engine } from './clickhouse.ts';
import type { Bench } from './figure.ts';

const TABLE = 'events_peer';
/** Equals the writer's block age. ClickHouse's default is 7.5 s. */
const FLUSH_INTERVAL_MS = 1_000;

const JSON_COLUMNS = `type String, messageId UUID, eventTimestamp String, anonymousId String, userId String,
  identityType String, fromId String, fromType String, toId String, toType String, deviceId String, sessionId String,
  surface String, consentLevel String, test Bool, eventName String, properties String, traits String,
  context Tuple(library String, libraryVersion String, userAgent String, locale String, timezone String, screen String,
    screenDensity Nullable(Float64), pageUrl String, pagePath String, pageReferrer String, pageTitle String,
    browserLanguage String)`;

const hash = (id: string) => `if(${id} = '', toFixedString('', 16), reinterpretAsFixedString(sipHash128(${id})))`;

// Selects all columns of `events`. The reference gateway sends no identity keys or trace ids, so hashes replace them.
const toSelect = (environmentId: string, queue: string) => `SELECT
  '${environmentId}' AS environment_id, type, eventName AS event_name,
  parseDateTime64BestEffort(eventTimestamp, 3, 'UTC') AS event_time, _timestamp_ms AS received_at,
  messageId AS message_id, if(userId = '', anonymous_key, user_key) AS identity_key,
  ${hash('anonymousId')} AS anonymous_key, ${hash('userId')} AS user_key,
  ${hash('fromId')} AS from_key, ${hash('toId')} AS to_key,
  anonymousId AS anonymous_id, userId AS user_id, identityType AS identity_type, fromId AS from_id,
  fromType AS from_type, toId AS to_id, toType AS to_type, deviceId AS device_id, sessionId AS session_id, surface,
  consentLevel AS consent_level, test, context.library AS library, context.libraryVersion AS library_version,
  context.userAgent AS user_agent, context.locale AS locale, context.timezone AS timezone, context.screen AS screen,
  context.screenDensity AS screen_density, context.pageUrl AS page_url, context.pagePath AS page_path,
  context.pageReferrer AS page_referrer, context.pageTitle AS page_title,
  context.browserLanguage AS browser_language, properties, traits,
  lower(hex(sipHash128(messageId))) AS trace_id, _partition AS kafka_partition, _offset AS kafka_offset FROM ${queue}`;

// The writer's peer: ClickHouse consumes JSON messages, set up as described in ClickHouse's guide.
export async function openKafkaEngine(bench: Bench, topic: string) {
  const engine = createEngine(bench);
  const settings = Object.entries({
    kafka_broker_list: `'${bench.stores.kafka.join(',')}'`,
    kafka_topic_list: `'${topic}'`,
    kafka_group_name: `'${bench.topicPrefix}kafka-engine'`,
    kafka_format: `'JSONEachRow'`,
    kafka_flush_interval_ms: FLUSH_INTERVAL_MS,
  }).map(([name, value]) => `${name} = ${value}`);
  await dropAll(engine);
  await engine.query(`CREATE TABLE ${TABLE} AS events`);
  // The settings of `events` make inserts cheaper, which is part of the comparison.
  await engine.query(`ALTER TABLE ${TABLE} RESET SETTING merge_selector_base, min_bytes_for_wide_part`);
  await engine.query(`CREATE TABLE ${TABLE}_queue (${JSON_COLUMNS}) ENGINE = Kafka SETTINGS ${settings.join(', ')}`);
  await engine.query(
    `CREATE MATERIALIZED VIEW ${TABLE}_view TO ${TABLE} AS ${toSelect(bench.environmentId, `${TABLE}_queue`)}`,
  );
  return { table: TABLE, close: () => dropAll(engine) };
}

async function dropAll(engine: Engine): Promise<void> {
  for (const table of [`${TABLE}_view`, `${TABLE}_queue`, TABLE])
    await engine.query(`DROP TABLE IF EXISTS ${table} SYNC`);
}
