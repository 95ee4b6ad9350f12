import { type SchemaSource, TOPICS, type Topic } from '@playline/contracts';
import { pauseOrThrow } from '@playline/stores';
import type { LogBounds, LogReader } from '@playline/stream';
import { deadLetterTopicOf } from '@playline/stream';
import { createReadWaiting, type WaitingLink } from './waiting-links.ts';

/** Consumer groups whose committed offsets show which records are stored. */
export interface Groups {
  readonly linker: string;
  readonly writer: string;
}

export interface LogBarrierOptions {
  readonly reader: LogReader;
  readonly groups: Groups;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  readonly pollMs?: number;
}

/** End offsets of non-empty partitions by `topic/partition`, without the topic prefix. */
export type LogEnds = Readonly<Record<string, number>>;

/** Waits until the current records in the log are stored. @throws a broker error, or the signal's reason if aborted */
export interface LogBarrier {
  /** Waits until links are decided and decisions are stored. @returns the links that wait for erasures */
  linksStored(signal: AbortSignal): Promise<WaitingLink[]>;
  /** Waits until all personal data is stored. */
  allStored(signal: AbortSignal): Promise<LogEnds>;
  /** The linker's committed offsets by partition. The decisions on all earlier facts are published. */
  linkCommits(): Promise<ReadonlyMap<number, number>>;
}

const POLL_MS = 100;
/** Number of polls after which the log is checked for remaining records. */
const IDLE_POLLS = 10;

/** Erasure requests, and topics without personal data. */
const EXCLUDED: readonly Topic[] = [TOPICS.erasures, TOPICS.accessKeys, TOPICS.projects, TOPICS.rateLimitKeys];
const SOURCES: readonly Topic[] = Object.values(TOPICS).filter((topic) => !EXCLUDED.includes(topic));
const DEAD_LETTERS: readonly Topic[] = SOURCES.map((topic) => ({ ...topic, name: deadLetterTopicOf(topic.name) }));
const PERSONAL_TOPICS: readonly Topic[] = [...SOURCES, ...DEAD_LETTERS];

export function createLogBarrier(options: LogBarrierOptions): LogBarrier {
  const { reader, groups, topicPrefix } = options;
  const nameOf = (topic: Topic) => topicPrefix + topic.name;
  /** @throws if the topic is missing and is not a dead-letter topic */
  const endsOf = async (topic: Topic) => {
    const ends = await reader.bounds(nameOf(topic), { readUncommitted: true });
    if (ends.length === 0 && !DEAD_LETTERS.includes(topic)) throw new Error(`Topic ${nameOf(topic)} does not exist`);
    return ends;
  };
  const awaitEnds = (topic: Topic, groupId: string, until: { ends: readonly LogBounds[]; signal: AbortSignal }) =>
    awaitCommitted(options, { topic: nameOf(topic), groupId, ...until });
  const awaitEnd = async (topic: Topic, groupId: string, signal: AbortSignal) => {
    const ends = await endsOf(topic);
    await awaitEnds(topic, groupId, { ends, signal });
  };

  const readWaiting = createReadWaiting({ ...options, linkerGroup: groups.linker });
  const linksStored = async (signal: AbortSignal) => {
    await awaitEnd(TOPICS.identityLinks, groups.linker, signal);
    // Read before waiting for decisions, so that links that stop waiting are covered by the wait.
    const waiting = await readWaiting();
    await awaitEnd(TOPICS.identityDecisions, groups.writer, signal);
    return waiting;
  };
  return {
    linksStored,
    async allStored(signal) {
      const ends = new Map<Topic, LogBounds[]>();
      for (const topic of PERSONAL_TOPICS) ends.set(topic, await endsOf(topic));
      await awaitEnds(TOPICS.identityLinks, groups.linker, { ends: ends.get(TOPICS.identityLinks)!, signal });
      // Reread to include decisions that the linker has just published.
      ends.set(TOPICS.identityDecisions, await endsOf(TOPICS.identityDecisions));
      for (const topic of [TOPICS.messages, TOPICS.identityDecisions, TOPICS.consents])
        await awaitEnds(topic, groups.writer, { ends: ends.get(topic)!, signal });
      for (const topic of DEAD_LETTERS) ends.set(topic, await endsOf(topic));
      const named = [...ends].flatMap(([topic, bounds]) =>
        bounds.filter(({ end }) => end > 0).map(({ partition, end }) => [`${topic.name}/${partition}`, end] as const),
      );
      return Object.fromEntries(named);
    },
    linkCommits: () => reader.committed(groups.linker, nameOf(TOPICS.identityLinks)),
  };
}

async function awaitCommitted(
  { reader, pollMs = POLL_MS }: LogBarrierOptions,
  { topic, groupId, ends, signal }: { topic: string; groupId: string; ends: readonly LogBounds[]; signal: AbortSignal },
): Promise<void> {
  for (let poll = 1; ; poll++) {
    signal.throwIfAborted();
    const committed = await reader.committed(groupId, topic);
    const from = ({ partition, start }: LogBounds) => Math.max(committed.get(partition) ?? start, start);
    const lagging = ends.filter((bounds) => from(bounds) < bounds.end);
    if (lagging.length === 0)
      return assertLogExists(topic, await reader.bounds(topic, { readUncommitted: true }), committed);
    // The last record may be followed by a transaction's end marker, which consumers do not commit.
    if (poll % IDLE_POLLS === 0 && !(await hasRecords(reader, topic, { lagging, from }))) return;
    await pauseOrThrow(pollMs, signal);
  }
}

/** @throws if the log was truncated or recreated, in which case its records were not consumed */
function assertLogExists(topic: string, bounds: readonly LogBounds[], committed: ReadonlyMap<number, number>): void {
  const lost = bounds.find(({ partition, end }) => (committed.get(partition) ?? 0) > end);
  if (lost !== undefined)
    throw new Error(`${topic}/${lost.partition} ends before its committed offset: the log was truncated or recreated`);
}

async function hasRecords(
  reader: LogReader,
  topic: string,
  { lagging, from }: { lagging: readonly LogBounds[]; from(bounds: LogBounds): number },
): Promise<boolean> {
  const decided = new Map((await reader.bounds(topic)).map(({ partition, end }) => [partition, end]));
  for (const bounds of lagging) {
    const { partition, end } = bounds;
    if ((decided.get(partition) ?? 0) < end) return true;
    for await (const _ of reader.read({ topic, partition, start: from(bounds), end })) return true;
  }
  return false;
}
