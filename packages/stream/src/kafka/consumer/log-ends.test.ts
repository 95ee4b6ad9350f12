import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createEndsReader } from './log-ends.ts';

type Request = Parameters<Parameters<typeof createEndsReader>[0]['fetchTopicsOffset']>[0];

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function createBench(respond: () => Promise<number>) {
  const requests: Request[] = [];
  const fetchTopicsOffset = async (topics: Request) => {
    requests.push(topics);
    const offset = String(await respond());
    return topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({ partition, offset })),
    }));
  };
  const assigned = [
    { log: { topic: 'a', partition: 0 }, end: 3 },
    { log: { topic: 'a', partition: 1 }, end: 30 },
    { log: { topic: 'b', partition: 0 }, end: 0 },
  ];
  return { requests, assigned, refresh: createEndsReader({ fetchTopicsOffset }, () => assigned) };
}

it('the log end reader updates all partitions at most every five seconds, and ends never decrease', async () => {
  let end = 8;
  const { requests, assigned, refresh } = createBench(async () => end);
  await refresh();
  expect(assigned.map((each) => each.end)).toEqual([8, 30, 8]);
  expect(requests.flat().map(({ topic, partitions }) => [topic, partitions.length])).toEqual([
    ['a', 2],
    ['b', 1],
  ]);
  end = 40;
  vi.advanceTimersByTime(4_999);
  await refresh();
  expect(assigned[0]?.end).toBe(8);
  vi.advanceTimersByTime(1);
  await refresh();
  expect(assigned.map((each) => each.end)).toEqual([40, 40, 40]);
});

it('the log end reader keeps the last ends when brokers fail or hang, and sends one request at a time', async () => {
  let respond: () => Promise<number> = () => Promise.reject(new Error('no leader'));
  const { requests, assigned, refresh } = createBench(() => respond());
  await refresh();
  respond = () => new Promise(() => {});
  for (let round = 0; round < 2; round++) {
    vi.advanceTimersByTime(5_000);
    await refresh();
  }
  expect(requests).toHaveLength(2);
  expect(assigned.map((each) => each.end)).toEqual([3, 30, 0]);
});
