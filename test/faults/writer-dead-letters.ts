import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { deadLetterTopicOf, type OutgoingRecord, type StreamRecord } from '@playline/stream';
import { messageRecordOf, until } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import type { Effects } from './world/report.ts';
import { assertVerified, WAIT_MAX_MS } from './writer-engine.ts';
import { listen } from './writer-kafka-proxy.ts';
import { type ProxiedProcess, startProxiedProcess } from './writer-process.ts';
import type { WriterRig } from './writer-rig.ts';

const RUNS = 20;
const RUN_RECORDS = 10;
const POISON_FRACTION = 0.2;
const FRAME_BYTES = 5;

/** Creates bytes that cannot be decoded: without a frame, truncated, or with an unknown schema id. */
function createPoison(rig: WriterRig, random: Random): Buffer {
  const { value } = rig.toRecord(messageRecordOf('poison'));
  const noFrame = Buffer.from(`no frame ${random.hex(8)}`);
  const truncated = value.subarray(0, random.integer(FRAME_BYTES + 1, value.length - 1));
  const unknown = Buffer.from(value);
  unknown.writeInt32BE(2_000_000_000, 1);
  return random.pick([noFrame, truncated, unknown]);
}

const originOf = ({ headers }: StreamRecord) => `${headers['original-partition']}/${headers['original-offset']}`;

// Kills a writer while it reads valid and unreadable records. Each valid record must be stored once.
export async function poisonWriter(rig: WriterRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  const start = () => rig.startWriter({ BLOCK_ROWS_MAX: String(random.integer(5, 20)) });
  const commits = watchCommits(rig);
  const first = await start();
  await until('the writer is ready', () => first.isReady(), WAIT_MAX_MS);
  const poison = new Set<string>();
  const publish = async (runs: number) => {
    for (let run = 0; run < runs; run++) await rig.publish(createRun(rig, { random, poison }));
  };
  const runsBefore = random.integer(RUNS / 2, RUNS - 1);
  await publish(runsBefore);
  // The writer must be killed between the first and the last block.
  await until('a block is committed', async () => (await rig.lag()) < runsBefore * RUN_RECORDS, WAIT_MAX_MS);
  await first.kill();
  const lagAtKill = await rig.lag();
  await publish(RUNS - runsBefore);
  const second = await start();
  await rig.caughtUp();
  assert.deepEqual(await commits.stop(), [], 'committed offsets must not decrease');
  await assertDeadLetters(rig, poison);
  await assertVerified(rig);
  const stored = await rig.query('SELECT count(), uniqExact(kafka_partition, kafka_offset) FROM events FORMAT TSV');
  const records = await rig.read(rig.messages);
  const unreadable = records.filter(({ value }) => poison.has(hexOf(value))).length;
  const expected = records.length - unreadable;
  assert.equal(stored, `${expected}\t${expected}`);
  await second.stop();
  await Promise.all([first.close(), second.close()]);
  return {
    'records unreadable': unreadable,
    'committed before the kill': runsBefore * RUN_RECORDS - lagAtKill,
    'uncommitted at the kill': lagAtKill,
  };
}

const hexOf = (value: Buffer | null) => value?.toString('hex') ?? '';

function createRun(rig: WriterRig, { random, poison }: { random: Random; poison: Set<string> }): OutgoingRecord[] {
  return Array.from({ length: RUN_RECORDS }, (): OutgoingRecord => {
    const key = random.chance(0.5) ? Buffer.from(random.hex(16)) : null;
    const record = rig.toRecord(messageRecordOf('rig'), key);
    if (!random.chance(POISON_FRACTION)) return record;
    const value = createPoison(rig, random);
    poison.add(hexOf(value));
    return { ...record, value };
  });
}

/** Asserts that each unreadable record has an unchanged dead letter with a reason. A crash may cause duplicates. */
async function assertDeadLetters(rig: WriterRig, poison: ReadonlySet<string>): Promise<void> {
  const read = await rig.read(deadLetterTopicOf(rig.messages));
  const deadLetters = new Map(read.map((deadLetter) => [originOf(deadLetter), deadLetter]));
  const poisoned = (await rig.read(rig.messages)).filter(({ value }) => poison.has(hexOf(value)));
  assert.equal(deadLetters.size, poisoned.length, 'number of dead letters');
  for (const { partition, offset, key, value } of poisoned) {
    const deadLetter = deadLetters.get(`${partition}/${offset}`);
    assert.ok(deadLetter, `${partition}/${offset} has a dead letter`);
    assert.deepEqual([deadLetter.key, deadLetter.value], [key, value], 'the dead letter contains the unchanged record');
    assert.notEqual(String(deadLetter.headers.reason ?? ''), '', 'the dead letter has a reason');
    assert.equal(String(deadLetter.headers['original-topic']), rig.messages);
  }
}

/** Polls the group's committed offsets. `stop` returns the offsets that decreased. */
function watchCommits({ reader, group, messages }: WriterRig) {
  const highest = new Map<number, number>();
  const decreases: string[] = [];
  let isStopped = false;
  const poll = async () => {
    for (const [partition, offset] of await reader.committed(group, messages)) {
      const before = highest.get(partition) ?? 0;
      if (offset < before) decreases.push(`partition ${partition}: from ${before} to ${offset}`);
      highest.set(partition, Math.max(before, offset));
    }
  };
  const watching = (async () => {
    while (!isStopped) {
      await poll();
      await delay(50);
    }
  })();
  return {
    stop: async () => {
      isStopped = true;
      await watching;
      await poll();
      return decreases;
    },
  };
}

/** Each transaction replays 100 dead letters, so some dead letters remain after all kills. */
const DEAD_LETTERS = 1_000;
const KILLS = 3;

// Turns messages into dead letters, and replays them with a command that is killed repeatedly.
export async function replayDeadLetters(rig: WriterRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  const environmentId = `test-replay-${seed}`;
  await createDeadLetters(rig, environmentId);
  const writer = await rig.startWriter();
  try {
    for (let kill = 0; kill < KILLS; kill++) await killReplay(rig, random);
    const { code, lines } = await rig.operate('dead-letters', 'replay', '--all');
    assert.equal(code, 0, lines.join('\n'));
    const count = (expression: string) =>
      rig.query(`SELECT ${expression} FROM events WHERE environment_id = '${environmentId}'`);
    const areAllStored = async () => Number(await count('uniqExact(message_id)')) >= DEAD_LETTERS;
    await until('every message is stored', areAllStored, WAIT_MAX_MS);
    assert.equal(await countOpenDeadLetters(rig), 0, 'open dead letters');
    await until(
      'the writer reports no dead letters',
      async () => (await readDeadLetterMetric(rig, writer)) === 0,
      WAIT_MAX_MS,
    );
    assert.equal(Number(await count('count()')), DEAD_LETTERS);
    await assertVerified(rig);
    await writer.stop();
    return { 'dead letters replayed': DEAD_LETTERS, 'kills during a transaction commit': KILLS };
  } finally {
    await writer.close();
  }
}

async function createDeadLetters(rig: WriterRig, environmentId: string): Promise<void> {
  const registry = createServer((_request, response) => response.writeHead(404).end('{"error_code":40403}'));
  const writer = await rig.startWriter({ SCHEMA_REGISTRY_URL: `http://127.0.0.1:${await listen(registry)}` });
  try {
    await rig.publishMessages(environmentId, DEAD_LETTERS);
    await rig.caughtUp();
    await until(
      'the writer reports the dead letters',
      async () => (await readDeadLetterMetric(rig, writer)) === DEAD_LETTERS,
      WAIT_MAX_MS,
    );
    await writer.stop();
  } finally {
    await writer.close();
    registry.close();
  }
  assert.equal(await countOpenDeadLetters(rig), DEAD_LETTERS, 'dead letters');
}

/** Kills the replay command while it commits a transaction. The last request of the command arrives late or never. */
async function killReplay(rig: WriterRig, random: Random): Promise<void> {
  const { stores, environment } = rig;
  const [file, args] = ['services/operator/src/main.ts', ['dead-letters', 'replay', '--all']];
  const target = { brokers: stores.kafka, clickhouse: stores.clickhouse.url, environment };
  const command = await startProxiedProcess({ file, args, ...target });
  try {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let skips = random.integer(0, 2);
    const hold = async () => {
      if (skips-- > 0) return;
      reached.resolve();
      await released.promise;
    };
    const arrivesLate = random.chance(0.5);
    command.kafka.watch = { of: 'transactions', ...(random.chance(0.5) ? { onRequest: hold } : { onResponse: hold }) };
    const ended = until('the command has exited', () => command.hasExited, WAIT_MAX_MS).then(() => false);
    const isReached = await Promise.race([reached.promise.then(() => true), ended]);
    assert.ok(isReached, 'the replay exited before the transaction in which it was to be killed');
    await command.kill();
    if (!arrivesLate) await command.kafka.close();
    released.resolve();
    await command.kafka.settled();
  } finally {
    await command.close();
  }
}

/** Reads the dead-letter metric, which the writer updates every ten seconds; undefined before the first update. */
async function readDeadLetterMetric(rig: WriterRig, writer: ProxiedProcess): Promise<number | undefined> {
  const start = `playline_stream_open_dead_letters{topic="${rig.messages}"`;
  const line = (await writer.metrics()).split('\n').find((each) => each.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
}

async function countOpenDeadLetters(rig: WriterRig): Promise<number> {
  const { lines } = await rig.operate('dead-letters', 'list', '--json');
  const groups = JSON.parse(lines[0] ?? '[]') as { open: number }[];
  return groups.reduce((sum, { open }) => sum + open, 0);
}
