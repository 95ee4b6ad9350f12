import { setTimeout as delay } from 'node:timers/promises';
import type { ExaminedPartition } from '../../partitions/guarded-partition.ts';
import { parseRead } from '../../partitions/intent.ts';
import { type Finding, judgeLog } from '../../partitions/log-finding.ts';
import { Fenced, type LogPartition } from '../../partitions/log-partition.ts';
import type { ConsumerGroup } from './kafkajs-overrides.ts';
import type { LogView } from './log-view.ts';

/** All of them say that the partition may belong to someone else by now. */
const FENCES = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'FENCED_INSTANCE_ID']);
const ASK_AGAIN_MS = 200;

function toFence(fault: unknown): unknown {
  const type = fault instanceof Error && 'type' in fault ? String(fault.type) : '';
  return FENCES.has(type) ? new Fenced(type) : fault;
}

/** What it takes to look at assigned partitions. */
interface Looking {
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
  // Held on to: it belongs to one generation, while the group's own commit would use whichever is current.
  const offsets = group.offsetManager;
  return {
    ...at,
    async commit(offset, metadata) {
      const partitions = [{ partition, offset: String(offset), metadata }];
      try {
        await offsets.commitOffsets({ topics: [{ topic, partitions }] });
      } catch (fault) {
        throw toFence(fault);
      }
    },
    batchAt: (offset) => view.batchAt({ topic, partition, offset, topicId }),
    async firstOffset() {
      const found = (await view.offsets({ topic, partitions: [partition], first: true })).get(partition);
      if (found === undefined) throw new Error(`no broker tells where ${topic}/${partition} begins`);
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

async function judge(log: LogPartition, end: number): Promise<Finding> {
  const read = parseRead(log.committed, log.metadata);
  const { start } = log;
  const isThere = read.mark !== null && read.mark.base >= start && read.end <= end && read.committed >= start;
  const found = isThere ? await log.batchAt(read.mark!.base) : null;
  return judgeLog(read, { start, end, found });
}

/** Reads what is committed for partitions of a member, and what the log says of it. @throws Error to be asked again */
export async function examinePartitions(
  group: ConsumerGroup,
  { groupId, view }: Looking,
  asked: readonly { topic: string; partitions: readonly number[] }[],
): Promise<ExaminedPartition[]> {
  if (asked.length === 0) return [];
  const topics = asked.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map((partition) => ({ partition })),
  }));
  // First of all: what is asked for by name behind this may be of a later topic, and is then refused when it is fetched.
  const topicIds = new Map<string, string | null>();
  for (const { topic, partitions } of asked)
    topicIds.set(topic, await view.topicId({ topic, partition: partitions[0]! }));
  // kafkajs's own fetch of committed offsets drops the metadata. The coordinator may have moved since the group was joined.
  const { responses } = await (await view.coordinator(groupId)).offsetFetch({ groupId, topics });
  const examined: Promise<ExaminedPartition>[] = [];
  for (const { topic, partitions: found } of responses) {
    const partitions = found.map(({ partition }) => partition);
    const starts = await view.offsets({ topic, partitions, first: true });
    const ends = await view.offsets({ topic, partitions, first: false });
    for (const { partition, offset, metadata } of found) {
      const start = starts.get(partition) ?? 0;
      const committed = Number(offset) < 0 ? start : Number(offset);
      const topicId = topicIds.get(topic) ?? null;
      const note = Number(offset) < 0 ? null : (metadata ?? '');
      const at = { topic, partition, committed, metadata: note, start, topicId };
      const log = createLogPartition(group, view, at);
      view.pin({ topic, partition }, topicId);
      const end = ends.get(partition) ?? 0;
      examined.push(judge(log, end).then((finding) => ({ log, finding })));
    }
  }
  return await Promise.all(examined);
}

/**
 * Reads what is committed for the partitions just assigned, until it succeeds: starting anywhere else would skip or
 * repeat records. A member that cannot ask for longer than its session is replaced by another, which asks itself.
 */
export async function openGeneration(
  group: ConsumerGroup,
  options: Looking & { cancelled: () => boolean },
): Promise<ExaminedPartition[]> {
  const assigned = group.assigned().filter(({ partitions }) => partitions.length > 0);
  while (!options.cancelled()) {
    try {
      return await examinePartitions(group, options, assigned);
    } catch {
      await delay(ASK_AGAIN_MS);
      await options.view.refresh().catch(() => {});
    }
  }
  return [];
}
