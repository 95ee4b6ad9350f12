/** Restores identity data in an empty Redis from the log and the tables, or asserts that the deployment is new. */
import {
  type ConsentRecord,
  consentCodec,
  erasureRequestCodec,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  TOPICS,
} from '@playline/contracts';
import { type ErasureRequest, findRequestFault, readCutoffs } from '@playline/erasure';
import { toOverrideVersion } from '@playline/events';
import {
  EpochPresentFault,
  type ErasureHold,
  type LoggedConsent,
  type People,
  type RebuiltConsents,
  rebuildConsents,
  rebuildGraph,
  toDecidedFact,
  toOverrides,
  toSuspects,
  toUnlinkSides,
} from '@playline/people';
import { createQueryRows, readRows } from '@playline/stores';
import { awaitClickHouse, awaitStore, nullIfUnreachable, withLog } from '../await-store.ts';
import { EmptiedError } from '../command.ts';
import { boundsOf, countOffsets, findGrowth, findTail, findTopic, type LogTail, readTail } from './log-tail.ts';
import {
  type RereadPartition,
  readConsents,
  readDecidedOffsets,
  readOverrides,
  readSuspects,
  readUnlinkSides,
} from './tables.ts';
import type { RebuildSources, StoresContext } from './with-stores.ts';

interface RestoredConsents {
  readonly rebuilt: RebuiltConsents;
  /** Run id of Redis when the restore started. */
  readonly run: string;
  readonly tail: LogTail<ConsentRecord>;
}

/** Restores consents from the table and the log; later positions take precedence. Restore fences first. */
export async function restoreConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
): Promise<RestoredConsents> {
  const { run } = await consents.syncState();
  const tail = await findTail(sources, [TOPICS.consents, consentCodec]);
  const stored = await rebuildConsents(rebuild, readConsents(sources.query));
  const later = await rebuildConsents(rebuild, toLoggedConsent(sources, tail));
  return { rebuilt: sum(stored, later), run, tail };
}

/**
 * Restores consents that were logged after `tail`, once the epoch is set. If Redis has restarted in the meantime, the
 * consents are not marked as current, and gateways read the end of the log themselves.
 */
export async function restoreLaterConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
  { run, tail }: Pick<RestoredConsents, 'run' | 'tail'>,
): Promise<RebuiltConsents> {
  const growth = await findGrowth(sources, tail);
  const rebuilt = await rebuildConsents(rebuild, toLoggedConsent(sources, growth));
  await consents.markCurrent(run, new Map(growth.bounds.map(({ partition, end }) => [partition, end])));
  return rebuilt;
}

export function sum(a: RebuiltConsents, b: RebuiltConsents): RebuiltConsents {
  return { applied: a.applied + b.applied, superseded: a.superseded + b.superseded, fenced: a.fenced + b.fenced };
}

async function* toLoggedConsent(sources: RebuildSources, tail: LogTail<ConsentRecord>): AsyncGenerator<LoggedConsent> {
  for await (const { record, value } of readTail(sources, tail)) {
    const { environmentId, identityKey, status, receivedAt } = value;
    const position = { partition: record.partition, offset: record.offset, loggedAtMs: record.timestampMs };
    yield { environmentId, identityKey, status, receivedAt, position };
  }
}

export type RebuiltIdentity = Awaited<ReturnType<typeof rebuildIdentity>>;

/**
 * Restores fences, graph, consents and holds, and finally sets the epoch that linkers and gateways are waiting for. An
 * interrupted rebuild does not set the epoch and can be repeated.
 * @throws Error if an epoch exists, later consents could not be restored, or a store fails
 */
export async function rebuildIdentity(sources: RebuildSources, people: People, progress: LinkerProgress) {
  if ((await people.readEpoch()) !== null) throw new Error(IN_USE);
  const isMissing = await people.rebuild.missing();
  const { run } = await people.guards.fenceStatus();
  const restored = await restoreGraph(sources, people, progress).catch((fault: unknown) => {
    throw fault instanceof EpochPresentFault ? new Error(IN_USE, { cause: fault }) : fault;
  });
  const restoredConsents = await restoreConsents(sources, people);
  // Restored after the graph, because erasures may be requested while the graph is being read.
  const holds = await restoreHolds(sources, people, isMissing);
  const epoch = await people.rebuild.mintEpoch(run);
  // Restored after the epoch is set, because without an epoch, gateways log consents that they cannot store in Redis.
  const later = await restoreLaterConsents(sources, people, restoredConsents).catch((cause: unknown) => {
    throw new Error(`the rebuild is complete, except for ${MISSING_CONSENTS}`, { cause });
  });
  const consents = sum(restoredConsents.rebuilt, later);
  return { graph: restored, consents, holds, epoch };
}

const MISSING_CONSENTS = 'the consents that were logged during the rebuild: run npm run consent -- rebuild';

/** A graph with an epoch is in use, and loading old data would undo the linkers' changes. */
const IN_USE =
  'Redis already has an epoch, so the identity graph is complete and in use, and was not changed. If the epoch was created ' +
  'by mistake or is from an old copy, empty this Redis database (FLUSHDB), which stops all consumers, and run npm run ' +
  `rebuild. If an earlier rebuild failed after it had set the epoch, restore ${MISSING_CONSENTS}`;

/**
 * Restores the holds of all erasures without a receipt. The topic contains requests that are not stored yet, the
 * table contains requests that have expired from the topic.
 * @param isMissing environments to restore; holds of other environments may contain more identities than the request
 * @returns the number of holds
 */
export async function restoreHolds(
  sources: RebuildSources,
  { guards }: Pick<People, 'guards'>,
  isMissing: (environmentId: string) => boolean = () => true,
): Promise<number> {
  const found = new Map<string, ErasureHold>();
  for await (const hold of readLoggedHolds(sources)) found.set(toId(hold), hold);
  // The table may list more identities for a request than the topic does, so its entries replace those of the topic.
  for (const request of await sources.records.readUnfinished()) found.set(toId(request), toHold(request));
  const holds = new Map([...found].filter(([, { environmentId }]) => isMissing(environmentId)));
  for (const hold of holds.values()) await guards.putHold(hold);
  // A request with a receipt may already have been released, because the receipt is written before the release.
  const done = await sources.records.readFinished();
  const finished = [...holds.values()].filter((hold) => done.has(toId(hold)));
  for (const hold of finished) await guards.releaseHold(hold);
  return holds.size - finished.length;
}

const toId = ({ erasureId }: Pick<ErasureHold, 'erasureId'>) => erasureId.toString('hex');

function toHold(request: ErasureRequest): ErasureHold {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
  return { environmentId, erasureId, keys: [...subjectKeys, ...memberKeys], cutoffMs, lapsesAtMs: null };
}

async function* readLoggedHolds(sources: RebuildSources): AsyncGenerator<ErasureHold> {
  const done = await sources.records.readFinished();
  const requests = await findTopic(sources, [TOPICS.erasures, erasureRequestCodec]);
  for await (const { record, value } of readTail(sources, requests)) {
    const fault = findRequestFault(value);
    if (fault !== null) {
      const { topic, partition, offset } = record;
      sources.onProgress(`${topic}/${partition}/${offset} is an invalid request (${fault}) and was skipped`);
    } else if (!done.has(toId(value))) yield toHold(value);
  }
}

interface LinkerProgress {
  readonly linkerGroup: string;
  /** LINK_TOPIC_GENERATION of the linkers. */
  readonly generation: number;
  /** Whether to continue if the group has no committed offsets; all facts in the log are then decided again. */
  readonly decideAgain: boolean;
}

/** Without an epoch, linkers publish only the decisions of their current batch, so few rounds are needed. */
const ROUNDS_MAX = 5;

/**
 * Loads the graph from the tables and the log. If decisions are published in the meantime, all data is read again.
 * @throws EpochPresentFault, or an error of a store; can be repeated
 */
async function restoreGraph(sources: RebuildSources, people: People, progress: LinkerProgress) {
  const isMissing = await people.rebuild.missing();
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    // Committed offsets are read before the end of the decisions, so that all decisions on committed facts are read.
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
      decided: readDecidedOffsets(sources.query, applied),
      note: { mark: null, decisions: Object.fromEntries(tail.bounds.map(({ partition, end }) => [partition, end])) },
    });
    const growth = await countDecisions(sources, await findGrowth(sources, tail), isMissing);
    // `decisions` counts the decisions read from the log.
    if (growth === 0)
      return { ...rebuilt, fences: fences.length, decisions: countOffsets(tail), partitions: applied.length };
    sources.onProgress(`new decisions were published during the rebuild (${growth}): reading all data again`);
  }
  throw new Error(
    'decisions are still being published: stop the linker that uses a different Redis, then run the command again',
  );
}

/**
 * Facts before the committed offsets are decided. Later facts that were also decided are marked in the graph, so that
 * they have no effect when they are read again and cannot merge identities that have since been unlinked.
 */
async function readApplied(
  sources: RebuildSources,
  { linkerGroup, generation }: LinkerProgress,
): Promise<(RereadPartition & { offset: number })[]> {
  const topic = sources.topicPrefix + TOPICS.identityLinks.name;
  const committed = await sources.log.committed(linkerGroup, topic);
  const bounds = await boundsOf(sources, topic);
  // A committed offset beyond the end belongs to an earlier topic with the same name.
  return bounds.map(({ partition, start, end }) => {
    const next = Math.min(committed.get(partition) ?? 0, end);
    return { generation, partition, offset: next - 1, from: Math.max(next, start) };
  });
}

/** @throws Error if another group has decided facts */
function assertNothingDecided(tail: LogTail<IdentityDecisionRecord>, { linkerGroup }: LinkerProgress): void {
  if (tail.bounds.every(({ end }) => end === 0)) return;
  throw new Error(
    `consumer group '${linkerGroup}' has no committed offsets: check --linker-group. If the linkers have never committed an ` +
      'offset, pass --decide-again, and the linkers will decide all facts in the log again',
  );
}

async function* toRows(sources: RebuildSources, tail: LogTail<IdentityDecisionRecord>) {
  for await (const { value } of readTail(sources, tail)) {
    yield* toOverrides(value, toOverrideVersion(value));
    yield* toUnlinkSides(value);
    yield* toSuspects(value);
    yield toDecidedFact(value);
  }
}

/** Counts decisions about missing environments. Linkers continue to decide about others. */
async function countDecisions(
  sources: RebuildSources,
  tail: LogTail<IdentityDecisionRecord>,
  isMissing: (environmentId: string) => boolean,
): Promise<number> {
  let count = 0;
  for await (const { value } of readTail(sources, tail)) if (isMissing(value.environmentId)) count++;
  return count;
}

/** Topics that are empty in a new deployment. The end offset of a topic never decreases. */
const DATA_TOPICS = [TOPICS.identityDecisions, TOPICS.consents, TOPICS.erasures];
const DATA_TABLES = ['identity_overrides', 'consent_log'];

type Context = Pick<StoresContext, 'openLog' | 'clickhouse' | 'topicPrefix'>;

/**
 * Asserts that the deployment has no links, consents or erasures, because an empty graph would separate all persons.
 * @throws EmptiedError for a deployment with data; UnreachableError
 */
export async function assertNew(context: Context): Promise<void> {
  const found = [...(await findRecords(context)), ...(await findRows(context))];
  if (found.length === 0) return;
  throw new EmptiedError(
    `${found.join(', ')} contain data, so Redis is not new and has lost its data: run npm run rebuild`,
  );
}

async function findRecords({ openLog, topicPrefix }: Context): Promise<string[]> {
  const log = await nullIfUnreachable(openLog);
  if (log === null) return [];
  return withLog(log, async () => {
    const names = DATA_TOPICS.map(({ name }) => topicPrefix + name);
    // Leaders of new topics refuse requests for up to 1.9 s, until they have created the partition logs.
    const bounds = await awaitStore('Kafka', () => Promise.all(names.map((name) => log.bounds(name))));
    return names.filter((_, index) => bounds[index]!.some(({ end }) => end > 0));
  });
}

async function findRows({ clickhouse }: Context): Promise<string[]> {
  const account = await nullIfUnreachable(clickhouse);
  if (account === null) return [];
  // Uses a database that every account can read, because the configured database may not exist yet.
  const query = createQueryRows({ ...account, database: 'system' });
  await awaitClickHouse(query);
  const names = DATA_TABLES.map((name) => `'${name}'`).join();
  const rows = await readRows(
    query(`SELECT name FROM system.tables WHERE database = '${account.database.replaceAll("'", "''")}'
      AND name IN (${names}) AND total_rows > 0 ORDER BY name`),
  );
  return rows.map(([name]) => String(name));
}
