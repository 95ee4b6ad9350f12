// Follows the page infra/clickhouse/README.md, "More shards", while messages arrive.
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { messageRecordCodec, TOPICS, ZERO_KEY } from '@playline/contracts';
import { bareEnvironment, messageRecordOf, runStatement, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';
import { openRealStores, type RealStores } from '../../services/event-writer/src/test/open-stores.ts';

const START_MS = 240_000;
const MAIN = fileURLToPath(new URL('../../infra/clickhouse/main.ts', import.meta.url));
const ENVIRONMENT = 'grown';
const BATCH = 40;
const STEP_MS = 20;

let nodes: Nodes;
let stores: RealStores;
beforeAll(async () => {
  [nodes, stores] = await Promise.all([
    openNodes({ nodes: 3, clusters: [2, 3] }),
    openRealStores([TOPICS.messages.name]),
  ]);
}, START_MS);
afterAll(async () => {
  await stores?.killWriters();
  await stores?.close();
  await nodes?.close();
}, START_MS);

/** The settings for a cluster of the first nodes. */
const settingsOf = (shards: number, user: 'writer' | 'operator'): Record<string, string> => ({
  CLICKHOUSE_URL: nodes.urls[0]!,
  CLICKHOUSE_USER: user,
  CLICKHOUSE_PASSWORD: user === 'writer' ? nodes.secrets.writerPassword : nodes.secrets.operatorPassword,
  CLICKHOUSE_DATABASE: 'playline',
  CLICKHOUSE_CLUSTER: `playline_${shards}`,
  CLICKHOUSE_SHARD_URLS: nodes.urls.slice(0, shards).join(),
});
const runMain = (shards: number, ...args: string[]) => {
  const env = { ...bareEnvironment(), ...settingsOf(shards, 'operator') };
  return promisify(execFile)(process.execPath, [MAIN, ...args], { env });
};
const startWriter = (shards: number) =>
  stores.startWriter('grown', { ...settingsOf(shards, 'writer'), LOG_LEVEL: 'error' });
const read = (sql: string, { index = 0, database = 'playline' } = {}) => {
  const { operatorPassword: password } = nodes.secrets;
  return runStatement({ url: nodes.urls[index]!, user: 'operator', password, database }, sql);
};

function toMessage(index: number) {
  const identityKey =
    index % 9 === 0
      ? ZERO_KEY
      : createHash('md5')
          .update(`owner ${index % 60}`)
          .digest();
  const month = { eventTime: 1_790_000_000_000 - (index % 2) * 31 * 86_400_000 };
  const record = messageRecordOf('event', {
    environmentId: ENVIRONMENT,
    identityKey,
    messageId: randomBytes(16),
    ...month,
  });
  const key = identityKey === ZERO_KEY ? record.messageId : Buffer.concat([Buffer.from(ENVIRONMENT), identityKey]);
  return stores.outgoing(TOPICS.messages, messageRecordCodec, record, key);
}

/** Publishes messages at a constant rate until it is stopped. */
function startMessages() {
  let published = 0;
  const stopped = new AbortController();
  const running = (async () => {
    while (!stopped.signal.aborted) {
      await stores.publish(Array.from({ length: BATCH }, (_, index) => toMessage(published + index)));
      published += BATCH;
      await delay(STEP_MS);
    }
  })();
  return {
    get published() {
      return published;
    },
    stop: async () => {
      stopped.abort();
      await running;
    },
  };
}

/** Counts all events again and again. While no writer runs, each count must be the same or an error. */
function startQueries() {
  const counts = new Set<string>();
  const stopped = new AbortController();
  const running = (async () => {
    while (!stopped.signal.aborted) {
      const count = await read('SELECT count() FROM events_exact').catch(() => null);
      if (count !== null) counts.add(count);
    }
  })();
  return async () => {
    stopped.abort();
    await running;
    return [...counts];
  };
}

const STORED = 'SELECT count(), uniqExact(message_id) FROM events';
/** Rows of the derived table that differ from the events, over all shards. */
const DRIFT = `SELECT count() FROM (
  SELECT environment_id, identity_key, day, event_name, groupBitOr(side) AS sides FROM (
    SELECT environment_id, identity_key, day, event_name, 1 AS side FROM identity_days UNION ALL
    SELECT environment_id, identity_key, toDate(event_time), event_name, 2 FROM events
    WHERE identity_key != toFixedString('', 16)) GROUP BY ALL HAVING sides != 3)`;

it('each message has one row, and no query misses rows, when a third shard is added while messages arrive', {
  timeout: START_MS,
}, async () => {
  await runMain(2);
  const messages = startMessages();
  const [stopping, killed] = [await startWriter(2), await startWriter(2)];
  const stored = async () => Number((await read(STORED, { database: 'playline_all' })).split('\t')[0]);
  await until('rows are stored', async () => (await stored()) > 5_000, START_MS);
  // One of the writers leaves a block that it has begun.
  await Promise.all([stores.stop(stopping, 'SIGTERM'), stores.stop(killed, 'SIGKILL')]);
  const inserts = "SELECT count() FROM system.processes WHERE query_kind = 'Insert'";
  for (const index of [0, 1]) await until('no insert runs', async () => (await read(inserts, { index })) === '0');
  const stopQueries = startQueries();

  await runMain(3, 'reshard');

  const counts = await stopQueries();
  expect(counts).toHaveLength(1);
  await startWriter(3);
  const during = await stored();
  await until('further rows are stored', async () => (await stored()) > during, START_MS);
  await messages.stop();
  await until('every message is stored', async () => (await stored()) >= messages.published, START_MS);
  const all = { database: 'playline_all' };
  expect(await read(STORED, all)).toBe(`${messages.published}\t${messages.published}`);
  expect(await read(DRIFT, all)).toBe('0');
  for (const index of [0, 1, 2]) {
    const [own, foreign] = (
      await read(
        `SELECT count(), countIf(kafkaMurmurHash(if(identity_key = toFixedString('', 16), toString(message_id),
           concat(environment_id, identity_key))) % 3 != ${index}) FROM events`,
        { index },
      )
    ).split('\t');
    expect(Number(own)).toBeGreaterThan(messages.published / 6);
    expect(foreign).toBe('0');
  }
});
