import assert from 'node:assert/strict';
import { FRAME_BYTES, messageRecordCodec, TOPICS } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import type { GameDifferenceKind } from '../../simulate/game/sender.ts';
import { compareMessages, createEventReader } from '../../simulate/game/simulation.ts';
import { createDifferences } from '../../simulate/report.ts';
import { rowsOf } from './clickhouse.ts';
import { BrokenGuarantee, type SeedEnd } from './report.ts';
import type { Ledger } from './trial.ts';
import { waitFor } from './wait.ts';
import type { World } from './world.ts';

const SETTLE_MAX_MS = 90_000;

const GROUPS = [
  ['identity-linker', [TOPICS.identityLinks.name]],
  ['event-writer', [TOPICS.messages.name, TOPICS.identityDecisions.name, TOPICS.consents.name, TOPICS.rejections.name]],
] as const;

export type Ends = ReadonlyMap<number, number>;

export async function endsOf(world: World, topic: string): Promise<Ends> {
  const bounds = await world.log.bounds(world.deployment.topicPrefix + topic);
  return new Map(bounds.map(({ partition, end }) => [partition, end]));
}

/** Returns the number of records published to a topic. Queries the broker directly, not through the proxy. */
export async function countRecords(world: World, topic: string = TOPICS.messages.name): Promise<number> {
  return [...(await endsOf(world, topic)).values()].reduce((sum, end) => sum + end, 0);
}

async function lagOf(world: World): Promise<number> {
  let lag = 0;
  for (const [service, topics] of GROUPS)
    for (const topic of topics) {
      const name = world.deployment.topicPrefix + topic;
      const committed = await world.log.committed(world.groupOf(service), name);
      for (const [partition, end] of await endsOf(world, topic)) lag += end - (committed.get(partition) ?? 0);
    }
  return lag;
}

export async function settle(world: World): Promise<void> {
  // Checks twice, because the linker may publish its last decisions after the first check.
  for (let pass = 0; pass < 2; pass++)
    await waitFor('every record is committed', async () => (await lagOf(world)) === 0, SETTLE_MAX_MS);
}

interface EndCheck {
  readonly ledger: Ledger;
  readonly environmentId: string;
  readonly from: Ends;
  readonly scenario: { readonly replacesLog?: true };
}

// Asserts the guarantees after every fault: the exact view contains every acknowledged message once and no message that
// was not sent, and each record published since `from` has one row or was deduplicated.
export async function checkEnd(
  world: World,
  { ledger, environmentId, from, scenario }: EndCheck,
): Promise<Omit<SeedEnd, 'effects'>> {
  await settle(world);
  await checkNoDeadLetters(world);
  const { engine } = world.deployment;
  const differences = createDifferences<GameDifferenceKind>();
  const reader = createEventReader(engine, environmentId, ledger.run);
  const sent = { reader, run: ledger.run, ledger: ledger.outcomes };
  const { exact, rowsOf: rowsBySequence } = await compareMessages(sent, differences);
  if (differences.total > 0) {
    const kinds = differences.byKind();
    const countOf = (kind: GameDifferenceKind) => kinds.find((each) => each.kind === kind)?.count ?? 0;
    const texts = kinds.map(({ kind, count, first }) => `${count} ${kind}: ${first.join(' ')}`);
    throw new BrokenGuarantee(texts.join('; '), { lost: countOf('missing'), duplicated: countOf('doubled') });
  }
  const all = `SELECT count() FROM events_exact WHERE environment_id = '${environmentId}'`;
  const [[stored = ''] = []] = await rowsOf(engine, all);
  assert.equal(Number(stored), exact, 'number of rows in the trial’s environment');
  const { published, rows } = scenario.replacesLog
    ? await checkLogged(world, { from, rowsBySequence })
    : await checkRows(world, { from, exact });
  return { sent: ledger.sent, acknowledged: ledger.acknowledged, published, rows };
}

/** Checks rows by offset: no duplicate offsets, no offsets beyond the log's end, and one row per unique record. */
async function checkRows(world: World, { from, exact }: { from: Ends; exact: number }) {
  const ends = await endsOf(world, TOPICS.messages.name);
  const ranges = [...ends].map(([partition, end]) => ({ partition, start: from.get(partition) ?? 0, end }));
  const published = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  const where = ranges.map(({ partition, start }) => `(kafka_partition = ${partition} AND kafka_offset >= ${start})`);
  const [[rows = '', offsets = '', beyond = ''] = []] = await rowsOf(
    world.deployment.engine,
    `SELECT count(), uniqExact(kafka_partition, kafka_offset),
       countIf(kafka_offset >= transform(kafka_partition, [${[...ends.keys()]}], [${[...ends.values()]}], 0))
     FROM events WHERE ${where.join(' OR ')}`,
  );
  assert.equal(rows, offsets, 'rows have distinct offsets');
  assert.equal(beyond, '0', 'rows beyond the end of the log');
  const duplicates = published - exact;
  // An insert deduplicates messages within one block. All other duplicates remain, because merges are stopped.
  assert.ok(Number(rows) <= published && Number(rows) >= exact, `${rows} rows for ${published} records`);
  assert.ok(
    published - Number(rows) <= duplicates,
    `${rows} rows and ${duplicates} duplicates for ${published} records`,
  );
  return { published, rows: Number(rows) };
}

/** Byte offset of the sequence number in a message id. */
const SEQUENCE_OFFSET = 12;

async function checkLogged(world: World, { from, rowsBySequence }: { from: Ends; rowsBySequence: Uint8Array }) {
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const { decode } = messageRecordCodec;
  const missing: string[] = [];
  let published = 0;
  for (const { partition, end } of await world.log.bounds(topic))
    for await (const { value } of world.log.read({ topic, partition, start: from.get(partition) ?? 0, end })) {
      published++;
      const { messageId } = decode(value!.subarray(FRAME_BYTES));
      if (rowsBySequence[messageId.readUInt32BE(SEQUENCE_OFFSET)] !== 1) missing.push(messageId.toString('hex'));
    }
  const text = `${missing.length} messages are in the log, but not in the exact view: ${missing.slice(0, 10).join(' ')}`;
  if (missing.length > 0) throw new BrokenGuarantee(text, { lost: missing.length, duplicated: 0 });
  const [[rows = ''] = []] = await rowsOf(world.deployment.engine, 'SELECT count() FROM events');
  return { published, rows: Number(rows) };
}

async function checkNoDeadLetters(world: World): Promise<void> {
  for (const name of Object.values(TOPICS).map((topic) => deadLetterTopicOf(topic.name)))
    assert.equal(await countRecords(world, name), 0, `dead letters in ${name}`);
}
