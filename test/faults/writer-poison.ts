import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { OutgoingRecord, StreamRecord } from '@playline/stream';
import { deadLetterTopicOf } from '@playline/stream';
import { messageRecordOf, until } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import type { Reached } from './world/reached.ts';
import { assertVerified, WAIT_MAX_MS } from './writer-exact.ts';
import type { WriterRig } from './writer-rig.ts';

const RUNS = 20;
const RUN_RECORDS = 10;
const POISON_SHARE = 0.2;
const FRAME_BYTES = 5;

/** Bytes that cannot be decoded: no frame, a truncated record, or the frame of an unknown schema. */
function toPoison(rig: WriterRig, random: Random): Buffer {
  const { value } = rig.toRecord(messageRecordOf('poison'));
  const noFrame = Buffer.from(`no frame ${random.hex(8)}`);
  const brokenOff = value.subarray(0, random.integer(FRAME_BYTES + 1, value.length - 1));
  const unknown = Buffer.from(value);
  unknown.writeInt32BE(2_000_000_000, 1);
  return random.pick([noFrame, brokenOff, unknown]);
}

/** The offset from which a dead letter originates. */
const originOf = ({ headers }: StreamRecord) => `${headers['original-partition']}/${headers['original-offset']}`;

/** Mixes broken records among others and kills the writer. Commits never go back, and the others are stored once. */
export async function poisonWriter(rig: WriterRig, seed: number): Promise<Reached> {
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
  // In the middle of its work: after its first block and before its last one.
  await until('a block is committed', async () => (await rig.lag()) < runsBefore * RUN_RECORDS, WAIT_MAX_MS);
  await first.kill();
  const left = await rig.lag();
  await publish(RUNS - runsBefore);
  const second = await start();
  await rig.caughtUp();
  assert.deepEqual(await commits.stop(), [], 'commits that went back');
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
    'committed before the kill': runsBefore * RUN_RECORDS - left,
    'left by the killed writer': left,
  };
}

const hexOf = (value: Buffer | null) => value?.toString('hex') ?? '';

function createRun(rig: WriterRig, { random, poison }: { random: Random; poison: Set<string> }): OutgoingRecord[] {
  return Array.from({ length: RUN_RECORDS }, (): OutgoingRecord => {
    const key = random.chance(0.5) ? Buffer.from(random.hex(16)) : null;
    const record = rig.toRecord(messageRecordOf('rig'), key);
    if (!random.chance(POISON_SHARE)) return record;
    const value = toPoison(rig, random);
    poison.add(hexOf(value));
    return { ...record, value };
  });
}

/** Every broken record has a dead letter with its key, its bytes and a reason. A crash may repeat a dead letter. */
async function assertDeadLetters(rig: WriterRig, poison: ReadonlySet<string>): Promise<void> {
  const read = await rig.read(deadLetterTopicOf(rig.messages));
  const deadLetters = new Map(read.map((deadLetter) => [originOf(deadLetter), deadLetter]));
  const poisoned = (await rig.read(rig.messages)).filter(({ value }) => poison.has(hexOf(value)));
  assert.equal(deadLetters.size, poisoned.length, 'dead letters and poisoned records');
  for (const { partition, offset, key, value } of poisoned) {
    const deadLetter = deadLetters.get(`${partition}/${offset}`);
    assert.ok(deadLetter, `${partition}/${offset} has a dead letter`);
    assert.deepEqual([deadLetter.key, deadLetter.value], [key, value], 'the unchanged record');
    assert.notEqual(String(deadLetter.headers.reason ?? ''), '', 'a reason');
    assert.equal(String(deadLetter.headers['original-topic']), rig.messages);
  }
}

/** Reads the group's commits repeatedly. `stop` returns those that went back. */
function watchCommits({ reader, group, messages }: WriterRig) {
  const best = new Map<number, number>();
  const backwards: string[] = [];
  let isOver = false;
  const poll = async () => {
    for (const [partition, offset] of await reader.committed(group, messages)) {
      const before = best.get(partition) ?? 0;
      if (offset < before) backwards.push(`partition ${partition}: from ${before} to ${offset}`);
      best.set(partition, Math.max(before, offset));
    }
  };
  const watching = (async () => {
    while (!isOver) {
      await poll();
      await delay(50);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await watching;
      await poll();
      return backwards;
    },
  };
}
