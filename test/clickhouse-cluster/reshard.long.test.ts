import { runStatement } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applySql } from '../../infra/clickhouse/apply.ts';
import { reshard } from '../../infra/clickhouse/reshard.ts';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';

const START_MS = 120_000;
const ROWS = 20_000;
let nodes: Nodes;
beforeAll(async () => {
  nodes = await openNodes({ nodes: 3, clusters: [2, 3] });
}, START_MS);
afterAll(() => nodes?.close(), START_MS);

const accountOf = (index: number, database = 'playline') => ({
  url: nodes.urls[index]!,
  user: 'operator',
  password: nodes.secrets.operatorPassword,
  database,
});
const read = (sql: string, index = 0) => runStatement(accountOf(index), sql);

const FILL = `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, session_id, kafka_partition, kafka_offset)
  SELECT 'game', 'track', concat('event ', toString(number % 5)), toDateTime64('2026-06-01 00:00:00', 3, 'UTC') + number * 150,
    toDateTime64('2026-06-01 00:00:00', 3, 'UTC') + number * 150, generateUUIDv4(),
    if(number % 9 = 0, toFixedString('', 16), sipHash128(number % 700)), toString(number % 900), 0, number FROM numbers(${ROWS})`;
const QUERIES = [
  'SELECT count(), uniqExact(kafka_offset), sum(cityHash64(message_id)) FROM events_exact',
  'SELECT count(), uniqExact(person_key) FROM person_days',
  'SELECT count(), min(first_seen_at), max(last_seen_at) FROM persons',
  "SELECT count(), sum(events) FROM sessions_between(environment = 'game', since = '2026-06-01', until = '2026-07-30')",
];

it('a server becomes two shards and then three, with the same answers, and an interrupted run is completed', async () => {
  await applySql(accountOf(0));
  const inCluster = { ...accountOf(0), node: { cluster: 'playline_2', isHome: true } };
  await expect(applySql(inCluster)).rejects.toThrow('has the tables of a single server');
  await read(FILL);
  await read(
    `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version)
     SELECT 'game', sipHash128(number), sipHash128(number + 1), 'anonymous', now64(3), number FROM numbers(0, 100, 2)`,
  );
  const readAll = async () => {
    const answers: string[] = [];
    for (const sql of QUERIES) answers.push(await read(sql));
    return answers;
  };
  const before = await readAll();
  for (const count of [2, 3]) {
    const targets = Array.from({ length: count }, (_, index) => accountOf(index));
    await reshard(targets, `playline_${count}`, () => {});
    expect(await readAll()).toEqual(before);
    await expect(applySql(accountOf(0))).rejects.toThrow(`has the tables of cluster playline_${count}`);
    for (let index = 0; index < count; index++) {
      const [own = '0', foreign = '0'] = (
        await read(
          `SELECT count(), countIf(kafkaMurmurHash(if(identity_key = toFixedString('', 16), toString(message_id),
             concat(environment_id, identity_key))) % ${count} != ${index}) FROM events`,
          index,
        )
      ).split('\t');
      expect(Number(own)).toBeGreaterThan(ROWS / count / 2);
      expect(foreign).toBe('0');
      expect(await read('SELECT count() FROM identity_overrides FINAL', index)).toBe('50');
    }
  }
  // As if the last run had been interrupted after the first replaced partitions.
  await read('CREATE TABLE resharding (cluster String) ENGINE = Log');
  for (let index = 0; index < 3; index++)
    for (const table of ['events', 'identity_days', 'identities'])
      await read(`CREATE TABLE ${table}_next CLONE AS ${table}`, index);
  await read('TRUNCATE TABLE events', 1);
  const targets = [0, 1, 2].map((index) => accountOf(index));
  await reshard(targets, 'playline_3', () => {});
  expect(await readAll()).toEqual(before);
});
