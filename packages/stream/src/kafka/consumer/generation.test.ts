import { expect, it } from 'vitest';
import { openGeneration } from './generation.ts';
import type { ConsumerGroup, Coordinator } from './kafkajs-overrides.ts';
import type { LogView } from './log-view.ts';

const formerCoordinator: Coordinator = {
  offsetFetch: async () => {
    throw Object.assign(new Error('not the coordinator'), { type: 'NOT_COORDINATOR_FOR_GROUP' });
  },
};
const currentCoordinator: Coordinator = {
  offsetFetch: async ({ topics }) => ({
    responses: topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({ partition, offset: '7', metadata: '' })),
    })),
  }),
};

it('a member reads its start offsets from the current coordinator after the coordinator has moved', async () => {
  const group = {
    offsetManager: { getCoordinator: async () => formerCoordinator },
    assigned: () => [{ topic: 't', partitions: [0] }],
  } as unknown as ConsumerGroup;
  const view: LogView = {
    offsets: async ({ partitions, first }) => new Map(partitions.map((partition) => [partition, first ? 0 : 9])),
    coordinator: async () => currentCoordinator,
    topicId: async () => null,
    pin: () => {},
    batchAt: async () => null,
    decision: async () => null,
    refresh: async () => {},
  };
  let checks = 0;
  const examined = await openGeneration(group, { groupId: 'g', view, cancelled: () => checks++ > 3 });
  expect(examined.map(({ log }) => log.committed)).toEqual([7]);
});
