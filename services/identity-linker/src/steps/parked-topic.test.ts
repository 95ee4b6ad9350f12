import type { OutgoingRecord } from '@playline/stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PARKED_TOPIC_PACE, ParkedTopic, type ParkedTopicFact } from './parked-topic.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
const KB = 'x'.repeat(1_000);

interface FactFields {
  /** The fact's person, which is also the start of the record's value. */
  person: string;
  offset: number;
  first?: number;
  text?: string;
  receivedAt?: number;
  keys?: string[];
}

function toFact({ person, offset, first = offset, text = '', receivedAt = 10, ...rest }: FactFields): ParkedTopicFact {
  const hex = (name: string) => Buffer.from(name).toString('hex');
  const { keys = [`device ${first}`, person] } = rest;
  const headers = { 'first-offset': String(first), other: 'header' };
  const value = Buffer.from(`${person}${first}${text}`);
  const record = {
    topic: 'parked',
    partition: 0,
    offset,
    timestampMs: Date.now(),
    key: Buffer.from('env'),
    value,
    headers,
  };
  return { record, environmentId: 'env', messageId: hex(`${person}${first}`), receivedAt, keys: keys.map(hex) };
}

const offsetsOf = (mark: Buffer) =>
  Array.from({ length: mark.length / 8 }, (_, at) => Number(mark.readBigUInt64BE(at * 8)));

function createBench(pace = PARKED_TOPIC_PACE) {
  const held = new Map<string, number>();
  const checked: string[][] = [];
  const sent: { topic: string; names: string[]; records: readonly OutgoingRecord[] }[] = [];
  const faults: unknown[] = [];
  const broken = { guards: false, log: false };
  const onPublish = { run: () => {} };
  const commits: (number | null)[] = [];
  const marks: { offsets: number[]; publishedBefore: number }[] = [];
  const controller = new AbortController();
  const topic = new ParkedTopic({
    linkTopic: 'links',
    signal: controller.signal,
    pace,
    guards: {
      async heldFrom(_environmentId, keys) {
        const names = keys.map(String);
        checked.push(names);
        if (broken.guards) throw new Error('no store');
        return names.map((name) => held.get(name) ?? null);
      },
    },
    async publish(records) {
      const mark = records[0]!.headers!.left as Buffer | undefined;
      if (mark !== undefined) return void marks.push({ offsets: offsetsOf(mark), publishedBefore: sent.length });
      const names = records.map(({ value }) => value.toString('latin1', 0, 2));
      sent.push({ topic: records[0]!.topic, names, records });
      onPublish.run();
      if (broken.log) throw new Error('no broker');
    },
    onMoved: () => commits.push(topic.firstWaiting()),
    onFault: (fault) => faults.push(fault),
  });
  const written = () => sent.map(({ topic, names }) => [topic, ...names].join(' '));
  const add = (...facts: FactFields[]) => topic.add(facts.map(toFact));
  return {
    topic,
    add,
    held,
    checked,
    sent,
    written,
    faults,
    broken,
    onPublish,
    commits,
    marks,
    end: () => controller.abort(),
  };
}

it('one identity per person is checked every second, and nothing is written while all persons are held', async () => {
  const { add, held, checked, written } = createBench();
  held.set('a', 5).set('b', 5);
  await add({ person: 'a', offset: 1 }, { person: 'a', offset: 2 }, { person: 'b', offset: 3 });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(checked).toEqual([['device 1', 'a', 'device 2', 'device 3', 'b']]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(checked).toHaveLength(11);
  expect(new Set(checked.slice(1).map((names) => names.join()))).toEqual(new Set(['a,b']));
  expect(written()).toEqual([]);
});

it("a released person's facts are published in order, and facts of held persons stay", async () => {
  const { topic, add, held, sent, written, commits } = createBench();
  held.set('a', 5).set('b', 5);
  await add({ person: 'a', offset: 1, first: 8 }, { person: 'b', offset: 2 }, { person: 'a', offset: 3, first: 4 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(topic.count()).toBe(3);
  held.delete('a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written()).toEqual(['links a4 a8']);
  expect(sent[0]!.records[0]).toMatchObject({ key: Buffer.from('env') });
  expect(String(sent[0]!.records[0]!.headers!['first-offset'])).toBe('4');
  expect([commits, topic.firstWaiting(), topic.count()]).toEqual([[2], 2, 1]);
  held.delete('b');
  await vi.advanceTimersByTimeAsync(1_000);
  expect([written().at(-1), topic.firstWaiting(), vi.getTimerCount()]).toEqual(['links b2', null, 0]);
});

it('facts that leave the parked topic before an earlier fact are recorded in the topic', async () => {
  const { add, held, marks } = createBench();
  held.set('a', 5).set('b', 5).set('c', 5);
  await add({ person: 'a', offset: 1 }, { person: 'b', offset: 2 }, { person: 'a', offset: 3 });
  await add({ person: 'c', offset: 4 }, { person: 'a', offset: 5 });
  held.delete('a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(marks).toEqual([{ offsets: [3, 5], publishedBefore: 1 }]);
  held.delete('b');
  held.delete('c');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(marks).toHaveLength(1);
});

it('a fact waits for every person in it that is held with a cut-off before the fact', async () => {
  const { add, held, written } = createBench();
  held.set('a', 5).set('b', 15);
  await add(
    { person: 'a', offset: 1, keys: ['a', 'b'] },
    { person: 'a', offset: 2, keys: ['a', 'b'], receivedAt: 20 },
    { person: 'b', offset: 3, keys: ['b'] },
  );
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written()).toEqual(['links b3']);
  held.delete('a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written().slice(1)).toEqual(['links a1']);
  held.delete('b');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written().slice(2)).toEqual(['links a2']);
});

it('facts stay and the commit does not advance until the copies are acknowledged', async () => {
  const { topic, add, written, broken, faults, commits } = createBench();
  broken.log = true;
  await add({ person: 'a', offset: 7 }, { person: 'a', offset: 9 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(written()).toEqual(['links a7 a9', 'links a7 a9']);
  expect([topic.firstWaiting(), commits, faults.length]).toEqual([7, [], 2]);
  broken.log = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect([topic.firstWaiting(), commits]).toEqual([null, [null]]);
});

it('all facts are rewritten once a day, even while Redis is unavailable', async () => {
  // One check per second would be about 180,000 checks in two days.
  const { topic, add, held, sent, written, broken } = createBench({ ...PARKED_TOPIC_PACE, checkIntervalMs: 10_000 });
  held.set('a', 5);
  await add({ person: 'a', offset: 1, first: 6 });
  await vi.advanceTimersByTimeAsync(12 * HOUR_MS);
  await add({ person: 'a', offset: 2, first: 3 });
  broken.guards = true;
  await vi.advanceTimersByTimeAsync(12 * HOUR_MS - 60_000);
  expect(written()).toEqual([]);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(written()).toEqual(['parked a3 a6']);
  expect(topic.count()).toBe(2);
  expect(String(sent[0]!.records[1]!.headers!['first-offset'])).toBe('6');
  await add({ person: 'a', offset: 3, first: 3 }, { person: 'a', offset: 4, first: 6 });
  expect([topic.count(), topic.firstWaiting()]).toEqual([2, 3]);
  await vi.advanceTimersByTimeAsync(23 * HOUR_MS);
  expect(written()).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2 * HOUR_MS);
  expect(written().slice(1)).toEqual(['parked a3 a6']);
});

it('only the latest copy of a fact is retained, even if the copy is read before its acknowledgement', async () => {
  const { topic, add, held, written, onPublish } = createBench({ ...PARKED_TOPIC_PACE, renewAfterMs: 5_000 });
  held.set('a', 5);
  await add({ person: 'a', offset: 1 }, { person: 'a', offset: 2 }, { person: 'a', offset: 3, first: 1 });
  expect([topic.count(), topic.firstWaiting()]).toEqual([2, 2]);
  onPublish.run = () => void add({ person: 'a', offset: 4, first: 1 }, { person: 'a', offset: 5, first: 2 });
  await vi.advanceTimersByTimeAsync(7_000);
  expect(written()).toEqual(['parked a1 a2']);
  expect([topic.count(), topic.firstWaiting()]).toEqual([2, 4]);
  held.delete('a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written().slice(1)).toEqual(['links a1 a2']);
});

it('above the memory limit, the oldest facts move to the end of the log every half minute', async () => {
  const { topic, add, held, written } = createBench({ ...PARKED_TOPIC_PACE, waitingBytesMax: 8_000 });
  held.set('a', 5);
  let added = 0;
  const addFacts = async () => {
    for (let offset = 1; offset <= 8; offset++) {
      await add({ person: offset === 8 ? 'b' : 'a', offset, text: KB });
      added = offset;
    }
  };
  void addFacts();
  await vi.advanceTimersByTimeAsync(29_500);
  expect([added, topic.count(), written()]).toEqual([5, 6, []]);
  await vi.advanceTimersByTimeAsync(1_000);
  // Half of the memory is available again, and the remaining facts were checked.
  expect(written()).toEqual(['parked a1 a2 a3 a4']);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(written().slice(1)).toEqual(['links b8']);
  expect([added, topic.firstWaiting()]).toEqual([8, 5]);
});

it('a moved fact that is read before its acknowledgement is retained', async () => {
  const { topic, add, held, written, onPublish } = createBench({ ...PARKED_TOPIC_PACE, waitingBytesMax: 2_000 });
  held.set('a', 5);
  void add({ person: 'a', offset: 1, text: KB }, { person: 'a', offset: 2, text: KB });
  onPublish.run = () => void add({ person: 'a', offset: 3, first: 1, text: KB });
  await vi.advanceTimersByTimeAsync(30_500);
  expect(written()).toEqual(['parked a1 a2']);
  expect([topic.count(), topic.firstWaiting()]).toEqual([1, 3]);
});

it('facts from a revoked partition are not published', async () => {
  const { add, topic, held, written, end } = createBench({ ...PARKED_TOPIC_PACE, waitingBytesMax: 1_000 });
  held.set('a', 5);
  let isAdded = false;
  void add({ person: 'a', offset: 1, text: KB }).then(() => {
    isAdded = true;
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isAdded).toBe(false);
  end();
  held.delete('a');
  await add({ person: 'a', offset: 2 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect([isAdded, written(), topic.count(), vi.getTimerCount()]).toEqual([true, [], 0, 0]);
});
