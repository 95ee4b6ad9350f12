import { expect, it } from 'vitest';
import { awaitLeaders, readMetadata, retryTemporary } from './apply.ts';

const failing = (times: number, fault: Error) => {
  const state = { requests: 0 };
  const request = async () => {
    if (state.requests++ < times) throw fault;
    return 'a response';
  };
  return { state, request };
};

it.each([
  ['a broker does not lead the partition yet', Object.assign(new Error('not the leader'), { retriable: true })],
  [
    'the client gave up on a temporary fault',
    Object.assign(new Error('gave up', { cause: Object.assign(new Error(), { retriable: true }) }), {
      retriable: false,
    }),
  ],
])('a request is retried when %s', async (_when, fault) => {
  const { state, request } = failing(3, fault);
  expect(await retryTemporary(request)).toBe('a response');
  expect(state.requests).toBe(4);
});

it('a request is not retried after a permanent error', async () => {
  const { state, request } = failing(3, Object.assign(new Error('Topic authorization failed'), { retriable: false }));
  await expect(retryTemporary(request)).rejects.toThrow('Topic authorization failed');
  expect(state.requests).toBe(1);
});

it('awaitLeaders waits until every partition of new topics exists and has a leader', async () => {
  const leaders = [[1], [-1, -1], [1, -1], [1, 1]];
  const read: number[][] = [];
  const fetchTopicMetadata = async () => {
    const now = leaders[read.length]!;
    read.push(now);
    return { topics: [{ name: 't', partitions: now.map((leader) => ({ leader })) }] } as never;
  };
  const led = await awaitLeaders({ fetchTopicMetadata }, [{ name: 't', partitions: 2 }]);
  expect(read).toEqual(leaders);
  expect(led).toMatchObject([{ name: 't', partitions: [{ leader: 1 }, { leader: 1 }] }]);
});

it('readMetadata names the topics when no broker sends a valid response', async () => {
  const fetchTopicMetadata = () =>
    Promise.reject(new TypeError("Cannot read properties of null (reading 'topicMetadata')"));
  await expect(readMetadata({ fetchTopicMetadata }, ['t', 'u'])).rejects.toMatchObject({
    message: 'a topic does not exist, or one of its partitions has no leader: t, u',
    retriable: true,
  });
});
