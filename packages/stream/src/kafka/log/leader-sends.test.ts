import { expect, it } from 'vitest';
import { LeaderSends } from './leader-sends.ts';

const TOPIC = 'topic';
const records = [0, 1, 2].map((partition) => ({ topic: TOPIC, partition, key: null, value: Buffer.from('value') }));

it('a transaction sends the records of one leader at a time, and regroups records whose leader moves', async () => {
  const leaderOf = [1, 1, 2];
  const leaders = new LeaderSends();
  const selectPartition = leaders.createPartitioner();
  const attempts: number[][] = [];
  const acknowledged: number[] = [];
  // Like kafkajs, selects all partitions before each attempt.
  const attempt = (group: typeof records) => {
    const partitionMetadata = leaderOf.map((leader, partitionId) => {
      return { leader, partitionId, partitionErrorCode: 0, replicas: [], isr: [] };
    });
    attempts.push(group.map((message) => selectPartition({ topic: TOPIC, message, partitionMetadata })));
  };
  await leaders.sendAll(records, async (group) => {
    attempt(group);
    if (attempts.length === 1) {
      leaderOf[1] = 2;
      attempt(group);
    }
    acknowledged.push(...group.map(({ partition }) => partition));
  });
  expect(attempts).toEqual([[0, 1], [0], [1, 2]]);
  expect(acknowledged).toEqual([0, 1, 2]);
});
