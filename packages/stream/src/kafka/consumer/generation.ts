import { setTimeout as delay } from 'node:timers/promises';
import { Fenced, type LogPartition } from '../../partitions/log-partition.ts';
import type { ConsumerGroup } from './kafkajs-overrides.ts';

/** All of them say that the partition may belong to someone else by now. */
const FENCES = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'FENCED_INSTANCE_ID']);
const ASK_AGAIN_MS = 200;

/** Asks for the first offset that each of these partitions still has. */
export type FirstOffsets = (topic: string, partitions: number[]) => Promise<Map<number, number>>;

function toFence(fault: unknown): unknown {
  const type = fault instanceof Error && 'type' in fault ? String(fault.type) : '';
  return FENCES.has(type) ? new Fenced(type) : fault;
}

function createLogPartition(
  group: ConsumerGroup,
  at: { topic: string; partition: number; committed: number; metadata: string | null; firstOffset: number },
): LogPartition {
  const { topic, partition, committed, metadata, firstOffset } = at;
  // Held on to: it belongs to one generation, while the group's own commit would use whichever is current.
  const offsets = group.offsetManager;
  return {
    topic,
    partition,
    committed,
    metadata,
    async commit(offset, metadata) {
      const partitions = [{ partition, offset: String(offset), metadata }];
      try {
        await offsets.commitOffsets({ topics: [{ topic, partitions }] });
      } catch (fault) {
        throw toFence(fault);
      }
    },
    seek(offset) {
      // Asking for less makes kafkajs commit an offset of its own, and our metadata is gone.
      const from = Math.max(offset, firstOffset);
      offsets.resolveOffset({ topic, partition, offset: String(from - 1) });
    },
    pause: () => group.pause([{ topic, partitions: [partition] }]),
    resume: () => group.resume([{ topic, partitions: [partition] }]),
  };
}

async function readAssignment(
  group: ConsumerGroup,
  groupId: string,
  firstOffsets: FirstOffsets,
): Promise<LogPartition[]> {
  const assigned = group.assigned().filter(({ partitions }) => partitions.length > 0);
  if (assigned.length === 0) return [];
  const topics = assigned.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map((partition) => ({ partition })),
  }));
  // kafkajs's own fetch of committed offsets drops the metadata
  const { responses } = await (await group.offsetManager.getCoordinator()).offsetFetch({ groupId, topics });
  const logs: LogPartition[] = [];
  for (const { topic, partitions } of responses) {
    const first = await firstOffsets(
      topic,
      partitions.map(({ partition }) => partition),
    );
    for (const { partition, offset, metadata } of partitions) {
      const firstOffset = first.get(partition) ?? 0;
      const committed = Number(offset) < 0 ? firstOffset : Number(offset);
      logs.push(createLogPartition(group, { topic, partition, committed, metadata: metadata || null, firstOffset }));
    }
  }
  return logs;
}

/**
 * Reads what is committed for the partitions just assigned, until it succeeds: starting anywhere else would skip or
 * repeat records. A member that cannot ask for longer than its session is replaced by another, which asks itself.
 */
export async function openGeneration(
  group: ConsumerGroup,
  options: { groupId: string; firstOffsets: FirstOffsets; cancelled: () => boolean },
): Promise<LogPartition[]> {
  while (!options.cancelled()) {
    try {
      return await readAssignment(group, options.groupId, options.firstOffsets);
    } catch {
      await delay(ASK_AGAIN_MS);
    }
  }
  return [];
}
