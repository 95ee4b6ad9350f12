import { expect, it } from 'vitest';
import { awaitLeaders, awaitServed, readMetadata, retryWhileLeading, toUnservedNotices } from './leaders.ts';

const refusing = (times: number, fault: Error) => {
  const state = { asked: 0 };
  const ask = async () => {
    if (state.asked++ < times) throw fault;
    return 'an answer';
  };
  return { state, ask };
};

it('asks again while a broker does not lead the partition yet', async () => {
  const notLeader = Object.assign(new Error('This server is not the leader'), { retriable: true });
  const { state, ask } = refusing(3, notLeader);
  expect(await retryWhileLeading(ask)).toBe('an answer');
  expect(state.asked).toBe(4);
});

it('gives up at once on a permanent error', async () => {
  const { state, ask } = refusing(3, Object.assign(new Error('Topic authorization failed'), { retriable: false }));
  await expect(retryWhileLeading(ask)).rejects.toThrow('Topic authorization failed');
  expect(state.asked).toBe(1);
});

it('waits until every partition of new topics is there and has a leader', async () => {
  const leaders = [[1], [-1, -1], [1, -1], [1, 1]];
  const told: number[][] = [];
  const fetchTopicMetadata = async () => {
    const now = leaders[told.length]!;
    told.push(now);
    return { topics: [{ name: 't', partitions: now.map((leader) => ({ leader })) }] } as never;
  };
  const led = await awaitLeaders({ fetchTopicMetadata }, [{ name: 't', atLeast: 2 }]);
  expect(told).toEqual(leaders);
  expect(led).toMatchObject([{ name: 't', partitions: [{ leader: 1 }, { leader: 1 }] }]);
});

it('says which topics have no leader where the client reads the answer of no broker', async () => {
  const fetchTopicMetadata = () =>
    Promise.reject(new TypeError("Cannot read properties of null (reading 'topicMetadata')"));
  await expect(readMetadata({ fetchTopicMetadata }, ['t', 'u'])).rejects.toMatchObject({
    message: 'a topic is not there, or a partition of it has no leader: t, u',
    retriable: true,
  });
});

it.each([
  ['the leader refuses', Object.assign(new Error('This server is not the leader'), { retriable: true })],
  [
    'the client has given up on a broker that does not know the topic yet',
    Object.assign(new Error('gave up', { cause: Object.assign(new Error(), { retriable: true }) }), {
      retriable: false,
    }),
  ],
])('waits until every topic is served: %s', async (_what, fault) => {
  const [first, second] = [refusing(2, fault), refusing(1, fault)];
  const asks: Record<string, () => Promise<unknown>> = { first: first.ask, second: second.ask };
  const fetchTopicOffsets = async (topic: string) => [await asks[topic]?.()] as never;
  expect(await awaitServed({ fetchTopicOffsets }, ['first', 'second'])).toEqual([]);
  expect([first.state.asked, second.state.asked]).toEqual([3, 2]);
});

it('does not wait for ever for a topic that is not served: it is named, and the others are asked', async () => {
  const notServed = Object.assign(new Error('There is no leader'), { retriable: true });
  const fetchTopicOffsets = async (topic: string) => {
    if (topic === 'gone') throw notServed;
    return [] as never;
  };
  const unserved = await awaitServed({ fetchTopicOffsets }, ['gone', 'there'], 10);
  expect(unserved).toEqual(['gone']);
  expect(toUnservedNotices(unserved)).toEqual([expect.stringMatching(/^gone: a partition has no leader/)]);
  expect(toUnservedNotices([])).toEqual([]);
});
