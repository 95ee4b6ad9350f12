import type { OutgoingRecord, StreamRecord } from '@playline/stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createParkedFacts, PARKED_PACE, type ParkedFact } from './parked-facts.ts';

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

/** Parked facts, and a log whose acknowledgements of rounds the test controls. */
function createBench(pace = PARKED_PACE) {
  const rounds: { names: string; records: readonly OutgoingRecord[] }[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  let isSlow = false;
  const publish = (records: readonly OutgoingRecord[]) => {
    rounds.push({ names: records.map(({ value }) => value.toString('latin1', 0, 1)).join(''), records });
    const answer = Promise.withResolvers<void>();
    answers.push(answer);
    if (!isSlow) answer.resolve();
    return answer.promise;
  };
  const controller = new AbortController();
  const told: (number | null)[] = [];
  const parked = createParkedFacts({
    publish,
    signal: controller.signal,
    pace,
    parkedTopic: 'parked',
    onLeft: () => told.push(parked.firstWaiting()),
  });
  const names = () => rounds.map((round) => round.names);
  const slow = () => {
    isSlow = true;
  };
  return { parked, rounds, names, answers, told, slow, end: () => controller.abort() };
}

describe('parked facts', () => {
  it('of a person go round after 0.5, 1, 2, 4 and 4 seconds, all together and in their order', async () => {
    const { parked, names } = createBench();
    const times: number[] = [];
    let known = 0;
    parked.add([toFact('a', 1), toFact('a', 2)]);
    for (let ms = 0; ms <= 11_500; ms += 100) {
      if (names().length > known) {
        known = names().length;
        times.push(ms);
        // They come back at once, because the hold is still there.
        parked.add([toFact('a', 10 * known), toFact('a', 10 * known + 1)]);
      }
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(times).toEqual([500, 1_500, 3_500, 7_500, 11_500]);
    expect(new Set(names())).toEqual(new Set(['aa']));
  });

  it('of one person do not wait for those of another, and new ones join the next round of their own', async () => {
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

  it('go round in the order in which they first came, even if a newer one was written before they came back', async () => {
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

  it('start again with half a second when their person had none left', async () => {
    const { parked, names } = createBench();
    parked.add([toFact('a', 1)]);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(names()).toEqual(['a']);
    parked.add([toFact('a', 2)]);
    await vi.advanceTimersByTimeAsync(500);
    expect(names()).toEqual(['a', 'a']);
  });

  it('go to the parked place with all of their person after a minute of rounds, and start anew when they come back', async () => {
    const { parked, rounds, names, told } = createBench();
    const back = (offset: number) => {
      const [{ headers = {} }] = rounds.at(-1)!.records as [OutgoingRecord];
      const { record, ...fact } = toFact('a', offset);
      return { ...fact, record: { ...record, headers } };
    };
    parked.add([toFact('a', 1)]);
    const parkedAtMs = Date.now();
    await vi.advanceTimersByTimeAsync(500);
    while (rounds.at(-1)!.records[0]!.topic === 'links') {
      const known = rounds.length;
      // It comes back at once, and a new owner of the partition goes on counting.
      if (parked.firstWaiting() === null) parked.add([back(known + 1)]);
      if (known === 17) parked.add([toFact('a', 100), toFact('b', 101)]);
      while (rounds.length === known) await vi.advanceTimersByTimeAsync(100);
    }
    expect(Date.now() - parkedAtMs).toBe(63_500);
    const place = rounds.findIndex(({ records }) => records[0]!.topic === 'parked');
    expect([place, names()[place]]).toEqual([18, 'aa']);
    const headers = rounds[place]!.records.map(({ headers }) =>
      [headers!['first-offset'], headers!.rounds].map(String),
    );
    expect(headers).toEqual([
      ['1', 'undefined'],
      ['100', 'undefined'],
    ]);
    expect(told).toEqual([null]);
    parked.add([back(200)]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(rounds.at(-1)!.records[0]).toMatchObject({ topic: 'links', headers: { rounds: '1', 'first-offset': '1' } });
  });

  it('keep the commit before the first of them until it is acknowledged at the end of the log', async () => {
    const { parked, answers, slow } = createBench();
    slow();
    expect(parked.firstWaiting()).toBeNull();
    parked.add([toFact('a', 7), toFact('b', 8), toFact('a', 9)]);
    expect(parked.firstWaiting()).toBe(7);
    await vi.advanceTimersByTimeAsync(500);
    expect(parked.firstWaiting()).toBe(7);
    answers[0]!.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(parked.firstWaiting()).toBe(8);
    const settled = parked.settled();
    answers[1]!.resolve();
    await settled;
    expect(parked.firstWaiting()).toBeNull();
  });

  it('go round again, before those that came later, when the log did not acknowledge them', async () => {
    const { parked, names, answers, slow } = createBench();
    slow();
    parked.add([toFact('a', 1)]);
    await vi.advanceTimersByTimeAsync(500);
    parked.add([toFact('a', 2)]);
    answers[0]!.reject(new Error('no broker'));
    await parked.settled();
    expect(parked.firstWaiting()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(names()).toEqual(['a', 'aa']);
  });

  it('go round early when they take too much memory, the longest parked first', async () => {
    const { parked, names } = createBench({ ...PARKED_PACE, waitingBytesMax: 4_000 });
    parked.add([toFact('a', 1, 1_000), toFact('b', 2, 1_000)]);
    expect(names()).toEqual([]);
    parked.add([toFact('c', 3, 1_000), toFact('a', 4, 1_000)]);
    expect(names()).toEqual(['aa']);
    await parked.settled();
    expect(parked.firstWaiting()).toBe(2);
  });

  it('keep only their own bytes in memory, not those of the fetch that brought them', async () => {
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

  it('are left in the log when the partition is given up', async () => {
    const { parked, names, end } = createBench();
    parked.add([toFact('a', 1)]);
    end();
    parked.add([toFact('a', 2)]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(names()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
