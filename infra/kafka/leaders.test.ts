import { expect, it } from 'vitest';
import { awaitLeaders, readMetadata, retryTemporary } from './client.ts';

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
  expect(await retryTemporary(ask)).toBe('an answer');
  expect(state.asked).toBe(4);
});

it('gives up at once on a permanent error', async () => {
  const { state, ask } = refusing(3, Object.assign(new Error('Topic authorization failed'), { retriable: false }));
  await expect(retryTemporary(ask)).rejects.toThrow('Topic authorization failed');
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
  const led = await awaitLeaders({ fetchTopicMetadata }, [{ name: 't', partitions: 2 }]);
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

it('asks again when the client has given up on a fault that passes', async () => {
  const passing = Object.assign(new Error('no such topic'), { retriable: true });
  const { state, ask } = refusing(2, Object.assign(new Error('gave up', { cause: passing }), { retriable: false }));
  expect(await retryTemporary(ask)).toBe('an answer');
  expect(state.asked).toBe(3);
});
