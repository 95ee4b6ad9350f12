import { createHash } from 'node:crypto';
import { frameRecord, type MessageRecord, messageRecordCodec, ZERO_KEY } from '@playline/contracts';
import { createRowPlan, RowBuffer, RowTranscoder, readCountQuery, readRecordKey } from '@playline/events';
import { openEventStore } from '@playline/events/clickhouse';
import { createMetrics } from '@playline/runtime';
import { createQueryRows } from '@playline/stores';
import { createStoreCalls, createTokenNotes, RetryableFault, toPartition } from '@playline/stream';
import { runStatement, until } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';
import { arbitraryRecord } from '../../packages/events/src/row/test/arbitrary-record.ts';
import { createWriteRows } from '../../services/event-writer/src/steps/block-step.ts';

const START_MS = 120_000;
const SHARDS = 2;
const NOW_MS = 1_790_000_000_000;
const MINUTE_MS = 60_000;
/** Enough for a merge to end between two evaluations of the same subquery. */
const MERGE_ROUNDS = 5;
const MERGED_MESSAGES = 2_000;
const plan = createRowPlan(messageRecordCodec.schema);
const transcoder = new RowTranscoder();

let nodes: Nodes;
beforeAll(async () => {
  nodes = await openNodes({ nodes: SHARDS });
}, START_MS);
afterAll(() => nodes?.close(), START_MS);

const read = (sql: string, index = 0) => {
  const { operatorPassword: password } = nodes.secrets;
  return runStatement({ url: nodes.urls[index]!, user: 'operator', password, database: 'playline_all' }, sql);
};
const hash = (text: string) => createHash('md5').update(text).digest();

/** Creates messages of several owners and of no owner, in two months. */
function toRecords(environmentId: string, count: number): MessageRecord[] {
  const [sample] = fc.sample(arbitraryRecord, { numRuns: 1, seed: 1 });
  return Array.from({ length: count }, (_, index) => {
    const owner = index % 5 === 0 ? ZERO_KEY : hash(`owner ${index % 40}`);
    const time = NOW_MS - (index % 2) * 31 * 86_400_000;
    return {
      ...sample!,
      environmentId,
      type: 'track',
      eventName: `event ${index % 3}`,
      eventTime: time,
      receivedAt: time,
      messageId: hash(`${environmentId} ${index}`),
      identityKey: owner,
    };
  });
}

function toRows(records: readonly MessageRecord[], start: number): RowBuffer {
  const rows = new RowBuffer(1024);
  for (const [index, record] of records.entries()) {
    const value = frameRecord(1, messageRecordCodec.encode(record));
    transcoder.add(rows, plan, { value, partition: 1, offset: start + index });
  }
  return rows;
}

/** A writer that sends its inserts to a node. */
function openWriter(index: number) {
  const { urls, cluster, secrets } = nodes;
  const account = { user: 'writer', password: secrets.writerPassword, database: 'playline' };
  const store = openEventStore({ ...account, url: urls[index]!, cluster: { name: cluster!, urls } });
  const writeRows = createWriteRows({ store, calls: createStoreCalls(createMetrics('test')), shards: SHARDS });
  const notes = createTokenNotes();
  const write = (rows: RowBuffer, start: number, triedBefore: boolean) => {
    const block = { topic: 'messages', partition: 1, start, end: start + rows.rows, transformVersion: 1, triedBefore };
    return writeRows({ table: 'events', rows, block, notes, signal: AbortSignal.timeout(START_MS) });
  };
  return { store, write };
}

/** Writes as the block consumer does: it repeats a block until the block is stored. */
async function writeUntilStored(index: number, rows: RowBuffer, start: number): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    const { store, write } = openWriter((index + attempt) % SHARDS);
    try {
      await write(rows, start, attempt > 0);
      return attempt;
    } catch (fault) {
      expect(fault).toBeInstanceOf(RetryableFault);
    } finally {
      await store.close();
    }
  }
}

const COUNTS = 'count(), uniqExact(message_id), uniqExact(kafka_offset)';
const readCounts = (environment: string) =>
  read(`SELECT ${COUNTS} FROM events WHERE environment_id = '${environment}'`);
/** Rows of derived tables that differ from the events, over all shards. */
const readDrift = (environment: string) => {
  const columns = 'environment_id, identity_key, day, event_name';
  const where = `environment_id = '${environment}'`;
  return read(`SELECT count() FROM (
    SELECT ${columns}, groupBitOr(side) AS sides FROM (
      SELECT ${columns}, 1 AS side FROM identity_days WHERE ${where} UNION ALL
      SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, 2 FROM events
      WHERE ${where} AND identity_key != toFixedString('', 16)) GROUP BY ${columns} HAVING sides != 3)`);
};

describe('a block for two shards', () => {
  it('is divided by the keys of its records, as Kafka divides them among partitions', async () => {
    const rows = toRows(toRecords('divided', 1_000), 0);
    const { store, write } = openWriter(0);
    await write(rows, 0, false);
    await store.close();
    const expected = Array.from({ length: rows.rows }, (_, row) => toPartition(readRecordKey(rows.rowAt(row)), SHARDS));
    const found = await read(
      "SELECT _shard_num - 1 FROM events WHERE environment_id = 'divided' ORDER BY kafka_offset",
    );
    expect(found.split('\n').map(Number)).toEqual(expected);
    expect(new Set(expected)).toEqual(new Set([0, 1]));
    expect(await readDrift('divided')).toBe('0');
  });

  it('is stored once, although another writer repeats it through another node, with and without reading first', async () => {
    const rows = toRows(toRecords('repeated', 500), 10_000);
    const writers = [openWriter(0), openWriter(1)];
    await writers[0]!.write(rows, 10_000, false);
    await writers[1]!.write(rows, 10_000, false);
    await writers[1]!.write(rows, 10_000, true);
    for (const { store } of writers) await store.close();
    expect(await readCounts('repeated')).toBe('500\t500\t500');
  });

  it('is stored once, although a shard was suspended during the first insert', async () => {
    const rows = toRows(toRecords('suspended', 500), 20_000);
    const { store, write } = openWriter(0);
    nodes.signal(1, 'SIGSTOP');
    const startedAt = performance.now();
    await expect(write(rows, 20_000, false)).rejects.toThrow(RetryableFault);
    expect(performance.now() - startedAt).toBeLessThan(45_000);
    nodes.signal(1, 'SIGCONT');
    await store.close();
    await writeUntilStored(1, rows, 20_000);
    expect(await readCounts('suspended')).toBe('500\t500\t500');
    expect(await readDrift('suspended')).toBe('0');
  });

  it('is stored once, although shards are killed while two writers insert', { timeout: 300_000 }, async () => {
    const blocks = Array.from({ length: 24 }, (_, index) => ({
      start: 100_000 + index * 1_000,
      rows: toRows(toRecords(`killed ${index}`, 400), 100_000 + index * 1_000),
    }));
    const pending = [...blocks.entries()];
    const kills = (async () => {
      for (let left = 20; left >= 5; left -= 5) {
        nodes.signal((left / 5) % SHARDS, 'SIGKILL');
        await until('further blocks are written', () => pending.length <= left, 120_000);
      }
    })();
    const run = async () => {
      for (let next = pending.shift(); next !== undefined; next = pending.shift())
        await writeUntilStored(next[0], next[1].rows, next[1].start);
    };
    await Promise.all([run(), run(), kills]);
    for (const index of blocks.keys()) {
      expect(await readCounts(`killed ${index}`)).toBe('400\t400\t400');
      expect(await readDrift(`killed ${index}`)).toBe('0');
    }
  });

  it('waits while a shard is away, and a block of another shard is stored', async () => {
    const all = toRecords('away', 2_000);
    const shardOf = (record: MessageRecord) => toPartition(readRecordKey(toRows([record], 0).rowAt(0)), SHARDS);
    const here = all.filter((record) => shardOf(record) === 0).slice(0, 100);
    nodes.signal(1, 'SIGSTOP');
    const { store, write } = openWriter(0);
    await write(toRows(here, 300_000), 300_000, false);
    await expect(read('SELECT count() FROM events')).rejects.toThrow(
      /ALL_CONNECTION_TRIES_FAILED|SOCKET_TIMEOUT|279|209/,
    );
    nodes.signal(1, 'SIGCONT');
    await store.close();
    expect(await readCounts('away')).toBe('100\t100\t100');
  });

  it('is completed while another shard is away, although it was tried before, and its tables are repaired', async () => {
    const all = toRecords('tried', 500).filter((_, index) => index % 2 === 0);
    const rows = toRows(all, 400_000);
    const isHere = (_: MessageRecord, row: number) => toPartition(readRecordKey(rows.rowAt(row)), SHARDS) === 0;
    const here = all.filter(isHere).slice(0, 50);
    const first = openWriter(0);
    await first.write(toRows(here.slice(0, 30), 400_000), 400_000, false);
    await first.store.close();
    const local = { user: 'operator', password: nodes.secrets.operatorPassword, database: 'playline' };
    const run = (sql: string) => runStatement({ ...local, url: nodes.urls[0]! }, sql);
    // As if the first writer's insert had been interrupted after the rows were stored.
    for (const table of ['identity_days', 'identities', 'session_days', 'counted_days'])
      await run(`DELETE FROM ${table} WHERE environment_id = 'tried'`);
    expect(await readDrift('tried')).not.toBe('0');
    const countDays = () => run("SELECT count() FROM counted_days WHERE environment_id = 'tried'");
    nodes.signal(1, 'SIGSTOP');
    const second = openWriter(0);
    try {
      await second.write(toRows(here.slice(0, 30), 400_000), 400_000, true);
      expect(await countDays()).toBe('1');
      await second.write(toRows(here, 400_000), 400_000, true);
    } finally {
      nodes.signal(1, 'SIGCONT');
      await second.store.close();
    }
    expect(await readCounts('tried')).toBe('50\t50\t50');
    expect(await readDrift('tried')).toBe('0');
  });

  it('is counted completely in the overview while the copies of its messages are merged', {
    timeout: 300_000,
  }, async () => {
    const account = { user: 'operator', password: nodes.secrets.operatorPassword, database: 'playline' };
    const countsIn = await readCountQuery(createQueryRows({ ...account, url: nodes.urls[0]! }));
    const runOnEach = (sql: string) => Promise.all(nodes.urls.map((url) => runStatement({ ...account, url }, sql)));
    const { store, write } = openWriter(0);
    for (let round = 0; round < MERGE_ROUNDS; round++) {
      const environmentId = `merged ${round}`;
      const [time, start] = [NOW_MS + round * MINUTE_MS, 500_000 + 2 * round * MERGED_MESSAGES];
      const records = toRecords(environmentId, MERGED_MESSAGES).map((record) => ({
        ...record,
        eventTime: time,
        test: false,
      }));
      await runOnEach('SYSTEM STOP MERGES events');
      for (const copy of [0, 1]) {
        const copies = records.map((record) => ({ ...record, receivedAt: time + copy }));
        await write(toRows(copies, start + copy * MERGED_MESSAGES), start + copy * MERGED_MESSAGES, false);
      }
      await runOnEach('SYSTEM START MERGES events');
      const sinceS = Math.floor(time / MINUTE_MS) * 60;
      const counts = `SELECT sum(messages) FROM (${countsIn(sinceS, sinceS + 60)})
        WHERE environment_id = '${environmentId}' AND kind = 'event'`;
      let isMerged = false;
      const merging = runOnEach('OPTIMIZE TABLE events FINAL').finally(() => {
        isMerged = true;
      });
      while (!isMerged) expect(await read(counts)).toBe(String(MERGED_MESSAGES));
      await merging;
    }
    await store.close();
  });
});
