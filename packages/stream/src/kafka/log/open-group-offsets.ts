import { setTimeout as delay } from 'node:timers/promises';
import type { GroupOffsets, GroupPartition, LogReader } from '../../log.ts';
import { NO_NOTE, parseRead, toMetadata } from '../../partitions/intent.ts';
import type { LogMark } from '../../partitions/log-mark.ts';
import {
  compareWithLog,
  decisionGroupOf,
  isDecisionFor,
  type OffsetDecision,
  parseDecision,
  toDecisionMetadata,
} from '../../partitions/offset-decision.ts';
import { type Admin, offsetCommitV8, offsetForLeaderEpochV4 } from '../broker-client.ts';
import { NO_EPOCH, NO_REPLICA, ONE_BATCH_BYTES, READ_UNCOMMITTED } from '../protocol.ts';
import { connect, connectToLeader, type LogReaderOptions, openAdmin } from './open-admin.ts';
import { openLogReader, sendFetch } from './open-log-reader.ts';

const NO_GENERATION = -1;
const KEY_TYPE_GROUP = 0;
/** `committed` in a decision for a group without a commit. */
const NO_COMMIT = -1;
/** Ten seconds in total, which is more than a newly elected leader needs. */
const ATTEMPTS = 50;
const ATTEMPT_WAIT_MS = 200;

interface Commit {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string | null;
}

async function readCommits(admin: Admin, groupId: string): Promise<Commit[]> {
  const [group] = await admin.listConsumerGroupOffsets({ groups: [groupId] });
  const commits = (group?.topics ?? []).flatMap(({ name: topic, partitions }) =>
    partitions.map(({ partitionIndex: partition, committedOffset, metadata }) => {
      return { topic, partition, metadata: metadata ?? '', offset: Number(committedOffset) };
    }),
  );
  const committed = commits.filter(({ offset }) => offset >= 0);
  return committed.sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
}

async function readDecisions(admin: Admin, groupId: string): Promise<Map<string, OffsetDecision>> {
  const decisions = new Map<string, OffsetDecision>();
  for (const { topic, partition, offset, metadata } of await readCommits(admin, decisionGroupOf(groupId))) {
    const decision = parseDecision(offset, metadata);
    if (decision !== null) decisions.set(`${topic}/${partition}`, decision);
  }
  return decisions;
}

type PartitionName = { readonly topic: string; readonly partition: number };

async function readBatchAt(admin: Admin, { topic, partition, offset }: PartitionName & { offset: number }) {
  const { topicId, connection } = await connectToLeader(admin, { topic, partition });
  const epochs = { currentLeaderEpoch: NO_EPOCH, lastFetchedEpoch: NO_EPOCH };
  const requested = { partition, fetchOffset: BigInt(offset), partitionMaxBytes: ONE_BATCH_BYTES, ...epochs };
  // The batch was read before, so its transaction has ended.
  const { responses } = await sendFetch(connection, { topicId, partitions: [requested] }, READ_UNCOMMITTED);
  const batch = responses[0]?.partitions[0]?.records?.[0];
  if (batch === undefined) return null;
  // Converts the checksum to unsigned, because the client may return it as signed.
  const crc = batch.crc >>> 0;
  return { base: Number(batch.firstOffset), epoch: batch.partitionLeaderEpoch, crc } satisfies LogMark;
}

/** Reads the batch at an offset in the log. Retries, because a newly elected leader may not return the batch yet. */
async function awaitBatchAt(admin: Admin, at: PartitionName & { offset: number }): Promise<LogMark> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const found = await readBatchAt(admin, at);
    if (found !== null) return found;
    await delay(ATTEMPT_WAIT_MS);
  }
  throw new Error(
    `${at.topic}/${at.partition}: the leader does not return the batch at offset ${at.offset}. Try again later.`,
  );
}

/** Returns the end offset of the records up to this leader epoch, or null if the leader does not know the epoch. */
async function readEpochEnd(admin: Admin, { topic, partition }: PartitionName, leaderEpoch: number) {
  const { connection } = await connectToLeader(admin, { topic, partition });
  const partitions = [{ partitionIndex: partition, currentLeaderEpoch: NO_EPOCH, leaderEpoch }];
  const response = await offsetForLeaderEpochV4.api.async(connection, NO_REPLICA, [{ name: topic, partitions }]);
  const end = Number(response.topics[0]?.partitions[0]?.endOffset ?? -1);
  return end < 0 ? null : end;
}

async function commitAsNonMember(admin: Admin, group: string, { topic, partition, offset, metadata }: Commit) {
  const [coordinator] = await admin.findCoordinator({ keyType: KEY_TYPE_GROUP, keys: [group] });
  if (coordinator === undefined) throw new Error(`No broker stores the offsets of group ${group}.`);
  const connection = await connect(admin, coordinator);
  const at = { partitionIndex: partition, committedOffset: BigInt(offset), committedLeaderEpoch: NO_EPOCH };
  const partitions = [{ ...at, committedMetadata: metadata }];
  await offsetCommitV8.api.async(connection, group, NO_GENERATION, '', null, [{ name: topic, partitions }]);
}

async function moveGroup(
  { admin, reader }: { admin: Admin; reader: LogReader },
  { groupId, at }: { groupId: string; at: PartitionName },
  decision: OffsetDecision,
): Promise<boolean> {
  const { topic, partition } = at;
  const { from, decidedAtMs } = decision;
  const commits = await readCommits(admin, groupId);
  const current = commits.find((each) => each.topic === topic && each.partition === partition);
  const read = parseRead(current?.offset ?? NO_COMMIT, current?.metadata ?? null);
  if (!isDecisionFor(decision, read))
    throw new Error(`${topic}/${partition}: the commit of ${groupId} has changed. List the offsets and decide again.`);
  const start = (await reader.bounds(topic)).find((each) => each.partition === partition)?.start ?? 0;
  const mark = from > start ? await awaitBatchAt(admin, { ...at, offset: from - 1 }) : null;
  const triedTo = read.triedTo > from ? read.triedTo : null;
  const metadata = toMetadata({ ...NO_NOTE, mark, decidedAtMs, isDecision: true, triedTo });
  try {
    await commitAsNonMember(admin, groupId, { ...at, offset: from, metadata });
    return true;
  } catch (fault) {
    // The coordinator rejects the commit if the group has members or is rebalancing.
    if (fault instanceof AggregateError && fault.errors.some(({ needsRejoin }) => needsRejoin === true)) return false;
    throw fault;
  }
}

/** Connects on the first request. */
export function openGroupOffsets(options: LogReaderOptions): GroupOffsets {
  const admin = openAdmin(options);
  const reader = openLogReader(options);

  const examine = async (
    { topic, partition, offset: committed, metadata }: Commit,
    { start, end }: { start: number; end: number },
  ): Promise<Omit<GroupPartition, 'decision'>> => {
    const read = parseRead(committed, metadata);
    const { mark } = read;
    const isInLog = mark !== null && mark.base >= start && mark.base < end;
    const found = isInLog ? await awaitBatchAt(admin, { topic, partition, offset: mark.base }) : null;
    const finding = compareWithLog(read, { start, end, found });
    const isReplaced = finding.kind === 'shortened' || finding.kind === 'exchanged';
    const epochEnd = isReplaced && mark !== null ? await readEpochEnd(admin, { topic, partition }, mark.epoch) : null;
    const divergesAt = epochEnd === null ? null : Math.min(Math.max(epochEnd, start), committed);
    return { topic, partition, committed, readTo: read.end, mark, start, end, finding, divergesAt };
  };

  return {
    async list(groupId) {
      const [commits, decisions] = [await readCommits(admin, groupId), await readDecisions(admin, groupId)];
      const partitions: GroupPartition[] = [];
      for (const topic of new Set(commits.map((commit) => commit.topic))) {
        const bounds = await reader.bounds(topic);
        for (const commit of commits.filter((each) => each.topic === topic)) {
          const logBounds = bounds.find(({ partition }) => partition === commit.partition) ?? { start: 0, end: 0 };
          const decision = decisions.get(`${topic}/${commit.partition}`) ?? null;
          partitions.push({ ...(await examine(commit, logBounds)), decision });
        }
      }
      return partitions;
    },
    async decide(groupId, at, decision) {
      const commit = { ...at, offset: decision.from, metadata: toDecisionMetadata(decision) };
      await commitAsNonMember(admin, decisionGroupOf(groupId), commit);
    },
    move: (groupId, at, decision) => moveGroup({ admin, reader }, { groupId, at }, decision),
    async close() {
      await Promise.all([admin.close(), reader.close()]);
    },
  };
}
