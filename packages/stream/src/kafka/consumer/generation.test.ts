import { expect, it, onTestFinished } from 'vitest';
import { NO_NOTE, toMetadata } from '../../partitions/intent.ts';
import { examinePartitions, openGeneration } from './generation.ts';
import type { ConsumerGroup, Coordinator } from './kafkajs-overrides.ts';
import type { LogView } from './log-view.ts';

const formerCoordinator: Coordinator = {
  offsetFetch: async () => {
    throw Object.assign(new Error('not the coordinator'), { type: 'NOT_COORDINATOR_FOR_GROUP' });
  },
};
const METADATA = toMetadata({ ...NO_NOTE, mark: { base: 6, epoch: 0, crc: 1 } });
const currentCoordinator: Coordinator = {
  offsetFetch: async ({ topics }) => ({
    responses: topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({ partition, offset: '7', metadata: METADATA })),
    })),
  }),
};
const createView = (members: Partial<LogView>): LogView => ({
  offsets: async ({ partitions, first }) => new Map(partitions.map((partition) => [partition, first ? 0 : 9])),
  coordinator: async () => currentCoordinator,
  topicId: async () => null,
  pin: () => {},
  batchAt: async () => null,
  decision: async () => null,
  refresh: async () => {},
  ...members,
});

it('a member reads its start offsets from the current coordinator after the coordinator has moved', async () => {
  const group = {
    offsetManager: { getCoordinator: async () => formerCoordinator },
    assigned: () => [{ topic: 't', partitions: [0] }],
  } as unknown as ConsumerGroup;
  const view = createView({});
  let checks = 0;
  const examined = await openGeneration(group, { groupId: 'g', view, cancelled: () => checks++ > 3 });
  expect(examined.map(({ log }) => log.committed)).toEqual([7]);
});

it('an examination fails once, even if the batch of one topic and the offsets of the next one cannot be read', async () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', listen);
  onTestFinished(() => void process.off('unhandledRejection', listen));
  const view = createView({
    offsets: async ({ topic, partitions, first }) => {
      // Later than a failed comparison of the first topic would be detected as unhandled.
      if (topic === 'second') await new Promise((resolve) => setImmediate(resolve));
      if (topic === 'second') throw new Error('no offsets');
      return new Map(partitions.map((partition) => [partition, first ? 0 : 9]));
    },
    batchAt: async () => {
      throw new Error('no batch');
    },
  });
  const assigned = ['first', 'second'].map((topic) => ({ topic, partitions: [0] }));
  const examining = examinePartitions({} as ConsumerGroup, { groupId: 'g', view }, assigned);
  await expect(examining).rejects.toThrow('no offsets');
  expect(unhandled).toEqual([]);
});
