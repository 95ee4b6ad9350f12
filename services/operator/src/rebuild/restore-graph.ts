import { type IdentityDecisionRecord, identityDecisionCodec, TOPICS } from '@playline/contracts';
import { readCutoffs } from '@playline/erasure';
import { toOverrideVersion } from '@playline/events';
import {
  type DecidedPlace,
  type People,
  type PlacedSuspect,
  type RebuiltGraph,
  rebuildGraph,
  toDecidedPlace,
  toOverrides,
  toSuspects,
  toUnlinkSides,
  type UnlinkSide,
  type VersionedOverride,
} from '@playline/people';
import { boundsOf, countOffsets, findGrowth, findTail, type LogTail, readTail } from './log-tail.ts';
import type { RebuildSources } from './stores.ts';
import { type ComesAgain, readDecidedPlaces, readOverrides, readSuspects, readUnlinkSides } from './tables.ts';

export interface LinkerProgress {
  /** Consumer group of the linkers: the decisions on all facts that it has committed are in the log. */
  readonly linkerGroup: string;
  /** LINK_TOPIC_GENERATION of the linkers. */
  readonly generation: number;
  /** Continue although the group has committed nothing: all facts of the log are decided again. */
  readonly decideAgain: boolean;
}

export interface RestoredGraph extends RebuiltGraph {
  readonly fences: number;
  /** Decisions read from the log, including those that the tables have too. */
  readonly decisions: number;
  readonly partitions: number;
}

/**
 * Linkers refuse to work without an epoch, so new decisions come only from batches that were under way when Redis was
 * lost: one for each linker. More would come from a linker that uses another Redis.
 */
const ROUNDS_MAX = 5;

/**
 * Loads the graph from tables and log. If decisions were published while the tables were read, everything is read
 * again, since only half of them may have been seen.
 * @throws EpochPresentFault, or a fault of a store; then it can be repeated
 */
export async function restoreGraph(
  sources: RebuildSources,
  people: Pick<People, 'guards' | 'rebuild'>,
  progress: LinkerProgress,
): Promise<RestoredGraph> {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    // Commits are read before the end of the decisions, so that all decisions on committed facts are read.
    const applied = await readApplied(sources, progress);
    const tail = await findTail(sources, [TOPICS.identityDecisions, identityDecisionCodec]);
    if (applied.every(({ offset }) => offset < 0) && !progress.decideAgain) assertNothingDecided(tail, progress);
    const fences = await readCutoffs(sources.records);
    const rebuilt = await rebuildGraph(people, {
      fences,
      applied,
      later: toRows(sources, tail),
      stored: readOverrides(sources.query),
      unlinks: readUnlinkSides(sources.query),
      suspects: readSuspects(sources.query),
      decided: readDecidedPlaces(sources.query, applied),
      note: { mark: null, decisions: Object.fromEntries(tail.bounds.map(({ partition, end }) => [partition, end])) },
    });
    const growth = countOffsets(await findGrowth(sources, tail));
    if (growth === 0)
      return { ...rebuilt, fences: fences.length, decisions: countOffsets(tail), partitions: applied.length };
    sources.onProgress(`${growth} decisions were published meanwhile: reading everything again`);
  }
  throw new Error('decisions are still being published: a linker works on another Redis. Stop it, and try again');
}

/**
 * Facts before a group's commit are decided and published. Later ones are read again; the graph gets those of them that
 * are decided, so that they have no effect. Decided again, a fact could join what an unlink has separated since.
 */
async function readApplied(
  sources: RebuildSources,
  { linkerGroup, generation }: LinkerProgress,
): Promise<(ComesAgain & { offset: number })[]> {
  const topic = sources.topicPrefix + TOPICS.identityLinks.name;
  const committed = await sources.log.committed(linkerGroup, topic);
  const bounds = await boundsOf(sources, topic);
  // A commit after the end belongs to an earlier topic of that name.
  return bounds.map(({ partition, start, end }) => {
    const next = Math.min(committed.get(partition) ?? 0, end);
    return { generation, partition, offset: next - 1, from: Math.max(next, start) };
  });
}

/** @throws Error when facts were decided, but not by this group */
function assertNothingDecided(tail: LogTail<IdentityDecisionRecord>, { linkerGroup }: LinkerProgress): void {
  if (tail.bounds.every(({ end }) => end === 0)) return;
  throw new Error(
    `the consumer group '${linkerGroup}' has committed nothing: is --linker-group the linkers'? If they have never ` +
      'committed anything, --decide-again has them decide every fact of the log again',
  );
}

async function* toRows(
  sources: RebuildSources,
  tail: LogTail<IdentityDecisionRecord>,
): AsyncGenerator<VersionedOverride | UnlinkSide | PlacedSuspect | DecidedPlace> {
  for await (const { value } of readTail(sources, tail)) {
    yield* toOverrides(value, toOverrideVersion(value));
    yield* toUnlinkSides(value);
    yield* toSuspects(value);
    yield toDecidedPlace(value);
  }
}
