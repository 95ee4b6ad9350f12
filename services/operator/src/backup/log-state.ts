/** Saves the committed offsets of consumer groups, and moves groups back to them. */
import { createHash } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import { auditGroupOf, GROUPS } from '@playline/runtime';
import type { GroupOffsets, GroupPartition, LogReader, StreamRecord } from '@playline/stream';
import { OFFSET_GROUPS } from '../commands/offsets.ts';
import { FLOWS } from '../verify/flows.ts';
import type { StoredRows } from '../verify/stored-rows.ts';
import type { BackedUpCommit } from './manifest.ts';

/** Groups whose progress is stored in ClickHouse. The progress of other groups is stored in Redis and in topics. */
const TABLE_GROUPS: readonly string[] = [
  GROUPS.writer,
  auditGroupOf(GROUPS.writer),
  GROUPS.activityWriter,
  GROUPS.eraser,
];

/** Transaction markers have no record, so the last record may be some offsets before the end. */
const LAST_RECORD_WITHIN = 100;

export interface LogStores {
  readonly log: LogReader;
  readonly offsets: GroupOffsets;
  readonly topicPrefix: string;
}

/** Reads the commits of all groups. Call this before the tables are copied: rows of committed records are stored. */
export async function readCommits({ log, offsets, topicPrefix }: LogStores): Promise<BackedUpCommit[]> {
  const commits: BackedUpCommit[] = [];
  for (const group of OFFSET_GROUPS)
    for (const found of await listPartitions({ offsets, topicPrefix }, group)) {
      const { topic: name, partition, committed, start, decision } = found;
      const topic = name.slice(topicPrefix.length);
      const from = Math.max(start, committed - LAST_RECORD_WITHIN);
      const last = await readLast(log, { topic: name, partition, start: from, end: committed });
      const replaced = [...(decision?.replaced ?? [])];
      commits.push({
        group,
        topic,
        partition,
        committed,
        replaced,
        last: last && { offset: last.offset, sha256: sumOf(last) },
      });
    }
  return commits;
}

/** Lists the partitions of this deployment's topics, because deployments may share a cluster. */
async function listPartitions({ offsets, topicPrefix }: Pick<LogStores, 'offsets' | 'topicPrefix'>, group: string) {
  const names = new Set(Object.values(TOPICS).map(({ name }) => topicPrefix + name));
  return (await offsets.list(group)).filter(({ topic }) => names.has(topic));
}

type Section = Parameters<LogReader['read']>[0];

async function readLast(log: LogReader, section: Section): Promise<StreamRecord | null> {
  let last: StreamRecord | null = null;
  for await (const record of log.read(section)) last = record;
  return last;
}

const sumOf = ({ timestampMs, key, value }: StreamRecord): string => {
  const hash = createHash('sha256').update(String(timestampMs));
  for (const part of [key, value]) hash.update(part === null ? '-' : `${part.length}:`).update(part ?? '');
  return hash.digest('hex');
};

/** `same` if the log still contains the records before the commits of a backup, `replaced` if it has other records. */
export type LogComparison = 'same' | 'replaced';

/** @throws Error if only some topics have the records of the backup */
export async function compareLog(
  { log, topicPrefix }: LogStores,
  commits: readonly BackedUpCommit[],
): Promise<LogComparison> {
  const [same, other]: [string[], string[]] = [[], []];
  for (const { topic, partition, committed, last } of commits) {
    const name = topicPrefix + topic;
    const bounds = (await log.bounds(name)).find((each) => each.partition === partition);
    if (bounds === undefined || bounds.end < committed) other.push(`${topic}/${partition}`);
    else if (last !== null && last.offset >= bounds.start) {
      const found = await readLast(log, { topic: name, partition, start: last.offset, end: last.offset + 1 });
      // Compaction may have removed the record.
      if (found !== null) (sumOf(found) === last.sha256 ? same : other).push(`${topic}/${partition}`);
    }
  }
  if (other.length === 0) return 'same';
  if (same.length === 0) return 'replaced';
  throw new Error(
    `only a part of the log is the log of the backup: ${other.join(', ')} contain other records than ${same.join(', ')}. ` +
      'Check TOPIC_PREFIX and KAFKA_BROKERS. To restore without the log, delete these topics and create them again.',
  );
}

/** Records that retention has deleted since the backup, and that no table contains. */
export interface LostRange {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Moves the groups that write tables back to the commits of a backup. Their next blocks read which rows are stored, so
 * that rows that were copied after the commits were read are not written again.
 * @param commits the eraser's commits come from the backup whose erasures are restored
 * @throws Error, for a group with members, or without commits
 */
export async function moveGroups(stores: LogStores, commits: readonly BackedUpCommit[]): Promise<LostRange[]> {
  const lost: LostRange[] = [];
  for (const group of TABLE_GROUPS) {
    const current = await listPartitions(stores, group);
    const saved = commits.filter((each) => each.group === group);
    for (const { topic, partition } of saved)
      if (!current.some(isAt(stores.topicPrefix + topic, partition)))
        throw new Error(`group ${group} has no committed offset for ${topic}/${partition}: check CONSUMER_GROUP`);
    for (const found of current) {
      const { topic, partition, start } = found;
      const committed = committedIn(saved, stores.topicPrefix, found);
      const from = Math.max(committed, start);
      if (from > committed) lost.push({ group, topic, partition, start: committed, end: from });
      await move(stores.offsets, group, found, from);
    }
  }
  return lost;
}

const isAt = (topic: string, partition: number) => (each: { topic: string; partition: number }) =>
  each.topic === topic && each.partition === partition;

/** A partition without a commit in the backup had not been read at all. */
function committedIn(
  saved: readonly BackedUpCommit[],
  prefix: string,
  at: { topic: string; partition: number },
): number {
  return saved.find((each) => prefix + each.topic === at.topic && each.partition === at.partition)?.committed ?? 0;
}

async function move(offsets: GroupOffsets, group: string, found: GroupPartition, from: number): Promise<void> {
  const { topic, partition, committed, mark, decision } = found;
  const moved = await offsets.move(
    group,
    { topic, partition },
    {
      from,
      forCommit: { committed, mark },
      decidedAtMs: Date.now(),
      replaced: decision?.replaced ?? [],
    },
  );
  if (!moved) throw new Error(`group ${group} has members: stop all services, then run the command again`);
}

/** @throws Error if a consumer has committed since the groups were moved */
export async function assertNotConsumed(
  { offsets, topicPrefix }: LogStores,
  commits: readonly BackedUpCommit[],
): Promise<void> {
  for (const group of TABLE_GROUPS) {
    const saved = commits.filter((each) => each.group === group);
    for (const found of await listPartitions({ offsets, topicPrefix }, group)) {
      const { topic, partition, committed, start } = found;
      if (committed === Math.max(committedIn(saved, topicPrefix, found), start)) continue;
      throw new Error(
        `group ${group} has read ${topic}/${partition} during the restore: stop all services, then run the command again`,
      );
    }
  }
}

/** Decisions for this commit apply to no consumer, except to start a group without a commit. */
const NO_COMMIT = { committed: -1, mark: null };

/**
 * Marks the offsets of restored rows, which a new log uses again, so that `npm run verify` compares records with rows by
 * content. Commits the start of partitions without a commit, because `verify` looks up the marks by commit.
 * @returns false if the group has members, and its partitions without a commit could not be started
 */
export async function markReplaced(
  { log, offsets, topicPrefix }: LogStores,
  stored: Pick<StoredRows, 'lastOffsets'>,
  commits: readonly BackedUpCommit[],
): Promise<boolean> {
  const group = GROUPS.writer;
  const current = await offsets.list(group);
  let areStarted = true;
  for (const flow of FLOWS)
    for (const [partition, last] of await stored.lastOffsets(flow)) {
      const saved = commits.filter((each) => each.group === group);
      const earlier = saved.find(isAt(flow.topic, partition))?.replaced ?? [];
      const at = { topic: topicPrefix + flow.topic, partition };
      const from = (await log.bounds(at.topic)).find((each) => each.partition === partition)?.start ?? 0;
      const replaced = [{ start: 0, end: last + 1 }, ...earlier];
      const decision = { from, forCommit: NO_COMMIT, decidedAtMs: Date.now(), replaced };
      await offsets.decide(group, at, decision);
      if (current.some(isAt(at.topic, partition))) continue;
      areStarted = (await offsets.move(group, at, decision)) && areStarted;
    }
  return areStarted;
}
