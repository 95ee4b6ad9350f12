import { expect, it } from 'vitest';
import { awaitLeaders, readMetadata, retryTemporary } from './apply.ts';

const createFailingRequest = (failures: number, error: Error) => {
  const state = { requests: 0 };
  const request = async () => {
    if (state.requests++ < failures) throw error;
    return 'a response';
  };
  return { state, request };
};

it.each([
  ['a broker does not lead the partition yet', Object.assign(new Error('not the leader'), { retriable: true })],
  [
    'the client gave up on a temporary error',
    Object.assign(new Error('gave up', { cause: Object.assign(new Error(), { retriable: true }) }), {
      retriable: false,
    }),
  ],
])('retryTemporary retries a request when %s', async (_when, error) => {
  const { state, request } = createFailingRequest(3, error);
  expect(await retryTemporary(request)).toBe('a response');
  expect(state.requests).toBe(4);
});

it('retryTemporary does not retry a request after a permanent error', async () => {
  const { state, request } = createFailingRequest(
    3,
    Object.assign(new Error('Topic authorization failed'), { retriable: false }),
  );
  await expect(retryTemporary(request)).rejects.toThrow('Topic authorization failed');
  expect(state.requests).toBe(1);
});

it('awaitLeaders waits until all partitions of new topics exist and have a leader', async () => {
  const leaders = [[1], [-1, -1], [1, -1], [1, 1]];
  const responses: number[][] = [];
  const fetchTopicMetadata = async () => {
    const current = leaders[responses.length]!;
    responses.push(current);
    return { topics: [{ name: 't', partitions: current.map((leader) => ({ leader })) }] } as never;
  };
  const topics = await awaitLeaders({ fetchTopicMetadata }, [{ name: 't', partitions: 2 }]);
  expect(responses).toEqual(leaders);
  expect(topics).toMatchObject([{ name: 't', partitions: [{ leader: 1 }, { leader: 1 }] }]);
});

it('readMetadata reports the topic names when no broker returns a valid response', async () => {
  const fetchTopicMetadata = () =>
    Promise.reject(new TypeError("Cannot read properties of null (reading 'topicMetadata')"));
  await expect(readMetadata({ fetchTopicMetadata }, ['t', 'u'])).rejects.toMatchObject({
    message: 'a topic does not exist, or one of its partitions has no leader: t, u',
    retriable: true,
  });
});
