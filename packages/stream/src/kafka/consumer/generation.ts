import { setTimeout as delay } from 'node:timers/promises';
import type { ExaminedPartition } from '../../partitions/guarded-partition.ts';
import { parseRead } from '../../partitions/intent.ts';
import { Fenced, type LogPartition } from '../../partitions/log-partition.ts';
import { compareWithLog, type Finding } from '../../partitions/offset-decision.ts';
import type { ConsumerGroup } from './kafkajs-overrides.ts';
import type { LogView } from './log-view.ts';

const FENCES = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'FENCED_INSTANCE_ID']);
const RETRY_WAIT_MS = 200;

interface GroupView {
  readonly groupId: string;
  readonly view: LogView;
}

type Committed = Pick<LogPartition, 'topic' | 'partition' | 'committed' | 'metadata' | 'start'>;

function createLogPartition(
  group: ConsumerGroup,
  view: LogView,
  { topicId, ...at }: Committed & { topicId: string | null },
): LogPartition {
  const { topic, partition, start } = at;
  // Bound to this generation, unlike the commit method of the group.
  const offsets = group.offsetManager;
  return {
    ...at,
    async commit(offset, metadata) {
      const partitions = [{ partition, offset: String(offset), metadata }];
      try {
        await offsets.commitOffsets({ topics: [{ topic, partitions }] });
      } catch (fault) {
        const type = fault instanceof Error && 'type' in fault ? String(fault.type) : '';
        throw FENCES.has(type) ? new Fenced(type) : fault;
      }
    },
    batchAt: (offset) => view.batchAt({ topic, partition, offset, topicId }),
    async firstOffset() {
      const found = (await view.offsets({ topic, partitions: [partition], first: true })).get(partition);
      if (found === undefined) throw new Error(`The brokers returned no start offset for ${topic}/${partition}.`);
      return found;
    },
    seek(offset) {
      const from = Math.max(offset, start);
      offsets.resolveOffset({ topic, partition, offset: String(from - 1) });
    },
    pause: () => group.pause([{ topic, partitions: [partition] }]),
    resume: () => group.resume([{ topic, partitions: [partition] }]),
  };
}

async function compare(log: LogPartition, end: number): Promise<Finding> {
  const read = parseRead(log.committed, log.metadata);
  const { start } = log;
  const isInLog = read.mark !== null && read.mark.base >= start && read.end <= end && read.committed >= start;
  const found = isInLog ? await log.batchAt(read.mark!.base) : null;
  return compareWithLog(read, { start, end, found });
}

/** Reads the commits of partitions and compares them with the log. @throws a retryable Error */
export async function examinePartitions(
  group: ConsumerGroup,
  { groupId, view }: GroupView,
  assigned: readonly { topic: string; partitions: readonly number[] }[],
): Promise<ExaminedPartition[]> {
  if (assigned.length === 0) return [];
  const toRequest = (partitions: readonly number[]) => partitions.map((partition) => ({ partition }));
  const topics = assigned.map(({ topic, partitions }) => ({ topic, partitions: toRequest(partitions) }));
  // Read before the offsets, so that fetches with this ID are rejected if the topic is replaced afterwards.
  const topicIds = new Map<string, string | null>();
  for (const { topic, partitions } of assigned)
    topicIds.set(topic, await view.topicId({ topic, partition: partitions[0]! }));
  // The offset fetch in kafkajs drops the metadata and uses the coordinator from the join.
  const { responses } = await (await view.coordinator(groupId)).offsetFetch({ groupId, topics });
  const logs: { log: LogPartition; end: number }[] = [];
  for (const { topic, partitions: found } of responses) {
    const partitions = found.map(({ partition }) => partition);
    const starts = await view.offsets({ topic, partitions, first: true });
    const ends = await view.offsets({ topic, partitions, first: false });
    for (const { partition, offset, metadata } of found) {
      const start = starts.get(partition) ?? 0;
      const committed = Number(offset) < 0 ? start : Number(offset);
      const topicId = topicIds.get(topic) ?? null;
      const committedMetadata = Number(offset) < 0 ? null : (metadata ?? '');
      const at = { topic, partition, committed, metadata: committedMetadata, start, topicId };
      const log = createLogPartition(group, view, at);
      view.pin({ topic, partition }, topicId);
      logs.push({ log, end: ends.get(partition) ?? 0 });
    }
  }
  // Started together after all other requests, because an earlier rejection would be unhandled and end the process.
  return await Promise.all(logs.map(async ({ log, end }) => ({ log, finding: await compare(log, end) })));
}

/**
 * Retries the examination of newly assigned partitions until it succeeds, because starting at an unverified offset
 * could skip or repeat records. If the session expires, the group assigns the partitions to another member.
 */
export async function openGeneration(
  group: ConsumerGroup,
  options: GroupView & { cancelled: () => boolean },
): Promise<ExaminedPartition[]> {
  const assigned = group.assigned().filter(({ partitions }) => partitions.length > 0);
  while (!options.cancelled()) {
    try {
      return await examinePartitions(group, options, assigned);
    } catch {
      await delay(RETRY_WAIT_MS);
      await options.view.refresh().catch(() => {});
    }
  }
  return [];
}
