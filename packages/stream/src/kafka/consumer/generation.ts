import { setTimeout as delay } from 'node:timers/promises';
import type { ExaminedPartition } from '../../partitions/guarded-partition.ts';
import { parseRead } from '../../partitions/intent.ts';
import { Fenced, type LogPartition } from '../../partitions/log-partition.ts';
import { compareWithLog, type Finding } from '../../partitions/offset-decision.ts';
import type { ConsumerGroup } from './kafkajs-overrides.ts';
import type { LogView } from './log-view.ts';

/** Each of these errors says that the partition may belong to another member by now. */
const FENCES = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'FENCED_INSTANCE_ID']);
const RETRY_WAIT_MS = 200;

function toFence(fault: unknown): unknown {
  const type = fault instanceof Error && 'type' in fault ? String(fault.type) : '';
  return FENCES.has(type) ? new Fenced(type) : fault;
}

/** What is needed to examine assigned partitions. */
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
  // Kept in a variable: this object belongs to one generation of the group, while the group's own commit method uses
  // whichever is current.
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

async function compare(log: LogPartition, end: number): Promise<Finding> {
  const read = parseRead(log.committed, log.metadata);
  const { start } = log;
  const isThere = read.mark !== null && read.mark.base >= start && read.end <= end && read.committed >= start;
  const found = isThere ? await log.batchAt(read.mark!.base) : null;
  return compareWithLog(read, { start, end, found });
}

/**
 * Reads what is committed for partitions of a member, and what the log says of that.
 * @throws Error when it must be asked again
 */
export async function examinePartitions(
  group: ConsumerGroup,
  { groupId, view }: GroupView,
  asked: readonly { topic: string; partitions: readonly number[] }[],
): Promise<ExaminedPartition[]> {
  if (asked.length === 0) return [];
  const topics = asked.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map((partition) => ({ partition })),
  }));
  // Read first of all: if the topic is replaced after this, what is asked by name below may be about the new topic, and
  // then the fetch by this id is refused.
  const topicIds = new Map<string, string | null>();
  for (const { topic, partitions } of asked)
    topicIds.set(topic, await view.topicId({ topic, partition: partitions[0]! }));
  // kafkajs's own fetch of committed offsets drops the metadata. The coordinator may have changed since the member
  // joined.
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
      examined.push(compare(log, end).then((finding) => ({ log, finding })));
    }
  }
  return await Promise.all(examined);
}

/**
 * Reads what is committed for the partitions just assigned, until it succeeds: starting anywhere else would skip or
 * repeat records. If a member cannot ask for longer than its session lasts, the group gives its partitions to another
 * member, which asks itself.
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
