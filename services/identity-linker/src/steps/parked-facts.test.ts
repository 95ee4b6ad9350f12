import type { OutgoingRecord, StreamRecord } from '@playline/stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PARKED_PACE, type ParkedFact, ParkedFacts } from './parked-facts.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function toFact(person: string, offset: number, bytes = 10): ParkedFact {
  const value = Buffer.alloc(bytes, person);
  const record: StreamRecord = {
    topic: 'links',
    partition: 0,
    offset,
    timestampMs: 0,
    key: Buffer.from('env'),
    value,
    headers: { name: 'text', other: Buffer.from('bytes'), none: undefined },
  };
  return { person, record, keys: [Buffer.from(`key of ${person}`.padEnd(16))] };
}

function createBench(pace = PARKED_PACE) {
  const rounds: { names: string; records: readonly OutgoingRecord[] }[] = [];
  const acknowledgements: PromiseWithResolvers<void>[] = [];
  let isSlow = false;
  const publish = (records: readonly OutgoingRecord[]) => {
    rounds.push({ names: records.map(({ value }) => value.toString('latin1', 0, 1)).join(''), records });
    const acknowledgement = Promise.withResolvers<void>();
    acknowledgements.push(acknowledgement);
    if (!isSlow) acknowledgement.resolve();
    return acknowledgement.promise;
  };
  const controller = new AbortController();
  const commits: (number | null)[] = [];
  const parked = new ParkedFacts({
    publish,
    signal: controller.signal,
    pace,
    parkedTopic: 'parked',
    onMoved: () => commits.push(parked.firstWaiting()),
  });
  const names = () => rounds.map((round) => round.names);
  const slow = () => {
    isSlow = true;
  };
  return { parked, rounds, names, acknowledgements, commits, slow, end: () => controller.abort() };
}

it("a person's facts return together and in order after 0.5, 1, 2, 4 and 4 seconds", async () => {
  const { parked, names } = createBench();
  const times: number[] = [];
  let roundsSeen = 0;
  parked.add([toFact('a', 1), toFact('a', 2)]);
  for (let ms = 0; ms <= 11_500; ms += 100) {
    if (names().length > roundsSeen) {
      roundsSeen = names().length;
      times.push(ms);
      // Because of the hold, the graph parks the facts again immediately.
      parked.add([toFact('a', 10 * roundsSeen), toFact('a', 10 * roundsSeen + 1)]);
    }
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(times).toEqual([500, 1_500, 3_500, 7_500, 11_500]);
  expect(new Set(names())).toEqual(new Set(['aa']));
});

it("each person's facts have their own rounds, and new facts join the next round", async () => {
  const { parked, names } = createBench();
  parked.add([toFact('a', 1)]);
  await vi.advanceTimersByTimeAsync(500);
  parked.add([toFact('b', 2), toFact('a', 3)]);
  await vi.advanceTimersByTimeAsync(500);
  expect(names()).toEqual(['a', 'b']);
  parked.add([toFact('a', 4)]);
  await vi.advanceTimersByTimeAsync(500);
  expect(names()).toEqual(['a', 'b', 'aa']);
});

it('facts return in order of their first offsets', async () => {
  const { parked, rounds, names } = createBench();
  const first = toFact('a', 1);
  parked.add([first, toFact('a', 2)]);
  await vi.advanceTimersByTimeAsync(500);
  const copies = rounds[0]!.records.map(({ headers = {} }, at) => ({
    ...first,
    record: { ...first.record, offset: 4 + at, headers },
  }));
  parked.add([toFact('a', 3), ...copies]);
  expect(parked.firstWaiting()).toBe(3);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(names()).toEqual(['aa', 'aaa']);
  expect(rounds[1]!.records.map(({ headers }) => headers!['first-offset'])).toEqual(['1', '2', '3']);
});

it('rounds restart at half a second for a person who had no waiting facts', async () => {
  const { parked, names } = createBench();
  parked.add([toFact('a', 1)]);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(names()).toEqual(['a']);
  parked.add([toFact('a', 2)]);
  await vi.advanceTimersByTimeAsync(500);
  expect(names()).toEqual(['a', 'a']);
});

it("after a minute of rounds, all of a person's facts move to the parked topic", async () => {
  const { parked, rounds, names, commits } = createBench();
  const toReturned = (offset: number) => {
    const [{ headers = {} }] = rounds.at(-1)!.records as [OutgoingRecord];
    const { record, ...fact } = toFact('a', offset);
    return { ...fact, record: { ...record, headers } };
  };
  parked.add([toFact('a', 1)]);
  const parkedAtMs = Date.now();
  await vi.advanceTimersByTimeAsync(500);
  while (rounds.at(-1)!.records[0]!.topic === 'links') {
    const roundsSeen = rounds.length;
    // The fact returns immediately, and a new partition owner continues its count of rounds.
    if (parked.firstWaiting() === null) parked.add([toReturned(roundsSeen + 1)]);
    if (roundsSeen === 17) parked.add([toFact('a', 100), toFact('b', 101)]);
    while (rounds.length === roundsSeen) await vi.advanceTimersByTimeAsync(100);
  }
  expect(Date.now() - parkedAtMs).toBe(63_500);
  const moved = rounds.findIndex(({ records }) => records[0]!.topic === 'parked');
  expect([moved, names()[moved]]).toEqual([18, 'aa']);
  const headers = rounds[moved]!.records.map(({ headers }) => [headers!['first-offset'], headers!.rounds].map(String));
  expect(headers).toEqual([
    ['1', 'undefined'],
    ['100', 'undefined'],
  ]);
  expect(commits).toEqual([null]);
  parked.add([toReturned(200)]);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(rounds.at(-1)!.records[0]).toMatchObject({ topic: 'links', headers: { rounds: '1', 'first-offset': '1' } });
});

it('the commit stops before the first unacknowledged fact', async () => {
  const { parked, acknowledgements, slow } = createBench();
  slow();
  expect(parked.firstWaiting()).toBeNull();
  parked.add([toFact('a', 7), toFact('b', 8), toFact('a', 9)]);
  expect(parked.firstWaiting()).toBe(7);
  await vi.advanceTimersByTimeAsync(500);
  expect(parked.firstWaiting()).toBe(7);
  acknowledgements[0]!.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(parked.firstWaiting()).toBe(8);
  const settled = parked.settled();
  acknowledgements[1]!.resolve();
  await settled;
  expect(parked.firstWaiting()).toBeNull();
});

it('unacknowledged facts are republished before later facts', async () => {
  const { parked, names, acknowledgements, slow } = createBench();
  slow();
  parked.add([toFact('a', 1)]);
  await vi.advanceTimersByTimeAsync(500);
  parked.add([toFact('a', 2)]);
  acknowledgements[0]!.reject(new Error('no broker'));
  await parked.settled();
  expect(parked.firstWaiting()).toBe(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(names()).toEqual(['a', 'aa']);
});

it('the oldest facts return early when waiting facts exceed the memory limit', async () => {
  const { parked, names } = createBench({ ...PARKED_PACE, waitingBytesMax: 4_000 });
  parked.add([toFact('a', 1, 1_000), toFact('b', 2, 1_000)]);
  expect(names()).toEqual([]);
  parked.add([toFact('c', 3, 1_000), toFact('a', 4, 1_000)]);
  expect(names()).toEqual(['aa']);
  await parked.settled();
  expect(parked.firstWaiting()).toBe(2);
});

it('a waiting fact does not retain the fetched response in memory', async () => {
  const { parked, rounds } = createBench();
  const fetched = Buffer.alloc(1_000_000, 'x');
  const fact = toFact('a', 1);
  parked.add([{ ...fact, record: { ...fact.record, value: fetched.subarray(10, 20) } }]);
  fetched.fill('y');
  await vi.advanceTimersByTimeAsync(500);
  const [record] = rounds[0]!.records;
  expect(record!.value.toString()).toBe('x'.repeat(10));
  expect(record).toMatchObject({ topic: 'links', key: Buffer.from('env') });
  expect(record!.headers).toEqual({
    name: Buffer.from('text'),
    other: Buffer.from('bytes'),
    'first-offset': '1',
    'identity-keys': fact.keys[0],
    rounds: '1',
  });
});

it('facts from a revoked partition are not published', async () => {
  const { parked, names, end } = createBench();
  parked.add([toFact('a', 1)]);
  end();
  parked.add([toFact('a', 2)]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(names()).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});
