import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createEndsReader } from './log-ends.ts';

type Asked = Parameters<Parameters<typeof createEndsReader>[0]['fetchTopicsOffset']>[0];

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function createBench(answer: () => Promise<number>) {
  const asked: Asked[] = [];
  const fetchTopicsOffset = async (topics: Asked) => {
    asked.push(topics);
    const offset = String(await answer());
    return topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({ partition, offset })),
    }));
  };
  const known = [
    { log: { topic: 'a', partition: 0 }, end: 3 },
    { log: { topic: 'a', partition: 1 }, end: 30 },
    { log: { topic: 'b', partition: 0 }, end: 0 },
  ];
  return { asked, known, askEnds: createEndsReader({ fetchTopicsOffset }, () => known) };
}

it('learns later ends of all assigned partitions, at most every five seconds', async () => {
  let end = 8;
  const { asked, known, askEnds } = createBench(async () => end);
  await askEnds();
  // a fetch has heard of 30 already
  expect(known.map((each) => each.end)).toEqual([8, 30, 8]);
  expect(asked.flat().map(({ topic, partitions }) => [topic, partitions.length])).toEqual([
    ['a', 2],
    ['b', 1],
  ]);
  end = 40;
  vi.advanceTimersByTime(4_999);
  await askEnds();
  expect(known[0]?.end).toBe(8);
  vi.advanceTimersByTime(1);
  await askEnds();
  expect(known.map((each) => each.end)).toEqual([40, 40, 40]);
});

it('keeps the last known ends when brokers fail or do not answer, and asks only once meanwhile', async () => {
  let answer: () => Promise<number> = () => Promise.reject(new Error('no leader'));
  const { asked, known, askEnds } = createBench(() => answer());
  await askEnds();
  answer = () => new Promise(() => {});
  for (let round = 0; round < 2; round++) {
    vi.advanceTimersByTime(5_000);
    await askEnds();
  }
  expect(asked).toHaveLength(2);
  expect(known.map((each) => each.end)).toEqual([3, 30, 0]);
});
