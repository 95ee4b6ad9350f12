import { randomBytes } from 'node:crypto';
import {
  ERASED_TABLES,
  type ErasureFence,
  type ErasureProgress,
  type ErasureReceipt,
  type ErasureRequest,
  FENCES_KNOWN_WITHIN_MS,
  type FoundLink,
  type FoundRows,
  hashClosure,
  type KeptConsent,
  LOG_EXPIRES_AFTER_MS,
  raiseFences,
  type SweepResult,
} from '@playline/erasure';
import type { ChosenStatus, HoldName, People } from '@playline/people';
import { pauseOrThrow } from '@playline/stores';
import { type Closure, collectLinks, type ErasedPerson, type FoundClosure, isHeavy, toPersons } from './persons.ts';
import { TooManyLinksError } from './resolve.ts';
import { holdAll, type SettleParts, settleClosures, toId } from './settle.ts';

/** Name of a count in receipts: per table for deleted rows, per column for blanked rows. */
const storeNameOf = ({ table, column, as }: Pick<FoundRows, 'table' | 'column' | 'as'>): string =>
  as === 'own' ? `clickhouse.${table}` : `clickhouse.${table}.${column}`;

export interface BatchParts extends SettleParts {
  /** Republishes later links that were removed with the people. */
  readonly republishLater: (batchId: Buffer) => Promise<void>;
  readonly generation: number;
  readonly wallClockMs: () => number;
  readonly onStep?: (step: Step) => void;
}

/** The steps of a batch, in order. */
export type Step = 'resolve' | 'fence' | 'wait for the log' | 'forget' | 'sweep' | 'put back' | 'receipt' | 'release';

export interface Batch {
  /** 16 random bytes. */
  readonly batchId: Buffer;
  /** Excludes persons who already have receipts. */
  readonly persons: readonly ErasedPerson[];
  readonly names: readonly HoldName[];
  /** Counts of deleted data so far, by erasure id (hexadecimal). */
  readonly deleted: Map<string, Counts>;
}

/** Redis syncs its append-only file every second, so older changes survive a crash. */
const REDIS_ON_DISK_MS = 2_000;
/** If rows survive this many sweeps, a process is writing rows without checking fences. */
const SWEEPS_MAX = 10;

/**
 * Maximum number of links in memory, 300 bytes each. A person may have 1,000 identities (the graph's limit) and
 * therefore 499,500 links.
 */
const LINKS_MAX = 100_000;
const HEAVY_LINKS_MAX = 500_000;
/** Maximum number of identities per batch, about 50 MB. */
const IDENTITIES_MAX = 200_000;

type OnHeavy = (requests: readonly ErasureRequest[]) => void;

/**
 * Starts a batch: finds and holds the identities and stores the progress, but deletes no data. Requests that do not fit
 * are left for a later batch.
 * @param bounds.onHeavy called with requests whose people have too many links; if absent, these requests are included
 * @returns null if no request can be processed now
 * @throws store faults, after which the call may be retried
 */
export async function beginBatch(
  parts: BatchParts,
  requests: readonly ErasureRequest[],
  signal: AbortSignal,
  { onHeavy }: { readonly onHeavy?: OnHeavy } = {},
): Promise<Batch | null> {
  parts.onStep?.('resolve');
  const settled =
    onHeavy === undefined
      ? await settleClosures(parts, requests, HEAVY_LINKS_MAX, signal)
      : await settleLight(parts, requests, onHeavy, signal);
  const closures = limitIdentities(settled);
  if (closures.length === 0) return null;
  const names = closures.map(({ request }) => request);
  // Drops the links to free memory.
  const persons = toPersons(closures.map(({ request, keys }) => ({ request, keys })));
  const batch: Batch = { batchId: randomBytes(16), persons, names, deleted: new Map() };
  // Needed by later requests for linked people and to verify the receipt.
  await parts.records.putFound([...collectLinks(closures)].flatMap(toFound));
  await parts.records.putProgress(toProgress(batch));
  await assertOnlyStarter(parts, batch);
  return batch;
}

async function settleLight(
  parts: BatchParts,
  requests: readonly ErasureRequest[],
  onHeavy: OnHeavy,
  signal: AbortSignal,
): Promise<readonly FoundClosure[]> {
  for (let remaining = requests; remaining.length > 0; ) {
    const found = await settleClosures(parts, remaining, LINKS_MAX, signal).catch((fault: unknown) => {
      if (fault instanceof TooManyLinksError) return fault;
      throw fault;
    });
    const hasTooManyLinks = found instanceof TooManyLinksError;
    const heavy = hasTooManyLinks
      ? found.heavy
      : found.filter(({ keys }) => isHeavy(keys)).map(({ request }) => request);
    if (hasTooManyLinks && heavy.length === 0 && remaining.length > 1) throw found;
    // A request that alone has too many links is heavy.
    const excluded = hasTooManyLinks && remaining.length === 1 ? remaining : heavy;
    if (excluded.length > 0) onHeavy(excluded);
    if (!hasTooManyLinks) return found.filter(({ keys }) => !isHeavy(keys));
    remaining = remaining.filter((request) => !excluded.includes(request));
  }
  return [];
}

/**
 * Another process may have started these erasures while this process was paused. If each detects the other, both
 * withdraw.
 */
async function assertOnlyStarter({ records }: BatchParts, { batchId, names }: Batch): Promise<void> {
  const ids = new Set(names.map(toId));
  const isOther = (row: ErasureProgress) => ids.has(toId(row)) && !row.batchId.equals(batchId);
  if (!(await records.readProgress()).some(isOther)) return;
  await records.dropProgress(batchId);
  throw new Error('another process has started erasures in this batch');
}

/** Adds the closure and the links to a request. Without links, the request already contains all known members. */
function toFound([{ keys, request }, links]: readonly [FoundClosure, readonly FoundLink[]]): ErasureRequest[] {
  if (links.length === 0) return [];
  const subjects = new Set(request.subjectKeys.map((key) => key.toString('latin1')));
  return [{ ...request, memberKeys: keys.filter((key) => !subjects.has(key.toString('latin1'))), links }];
}

/** Returns the first closures that fit in a batch, at least one. */
function limitIdentities(closures: readonly FoundClosure[]): readonly FoundClosure[] {
  let identities = 0;
  const end = closures.findIndex(({ keys }, at) => {
    identities += keys.length;
    return at > 0 && identities > IDENTITIES_MAX;
  });
  return end === -1 ? closures : closures.slice(0, end);
}

/**
 * Restores started batches from their progress because the closures cannot be found again after the deletes.
 * @param unfinished requests without a receipt
 */
export function toBatches(progress: readonly ErasureProgress[], unfinished: readonly ErasureRequest[]): Batch[] {
  const requests = new Map(unfinished.map((request) => [request.erasureId.toString('hex'), request]));
  const byBatch = Map.groupBy(progress, ({ batchId }) => batchId.toString('hex'));
  return [...byBatch.values()].map((rows) => {
    const closures = rows.flatMap(({ erasureId, closureKeys: keys }): Closure[] => {
      const request = requests.get(erasureId.toString('hex'));
      return request === undefined ? [] : [{ request, keys }];
    });
    const deleted = new Map(rows.map((row): [string, Counts] => [row.erasureId.toString('hex'), row.deleted]));
    return { batchId: rows[0]!.batchId, persons: toPersons(closures), names: rows, deleted };
  });
}

/**
 * Erases the people in a batch and stores a receipt for each request. All steps are idempotent.
 * @throws store faults, after which the call may be retried
 */
export async function finishBatch(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<ErasureReceipt[]> {
  const receipts = batch.persons.length === 0 ? [] : await eraseAll(parts, batch, signal);
  parts.onStep?.('release');
  // Released after the receipts are stored because the intake checks for a receipt when a request is redelivered.
  for (const name of batch.names) await parts.people.guards.releaseHold(name);
  await parts.rows.dropTargets(batch.batchId);
  await parts.records.dropProgress(batch.batchId);
  return receipts;
}

async function eraseAll(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<ErasureReceipt[]> {
  const { rows, records, barrier, people, wallClockMs, pause = pauseOrThrow } = parts;
  const { batchId, persons } = batch;
  const begin = (step: Step) => {
    signal.throwIfAborted();
    parts.onStep?.(step);
  };
  begin('fence');
  await holdAll(
    parts,
    persons.flatMap(({ closures }) => closures),
  );
  const fences = persons.flatMap(({ identities }) => identities);
  await raiseFences(records, people.guards, fences);
  const fencedAt = wallClockMs();

  begin('wait for the log');
  await pause(FENCES_KNOWN_WITHIN_MS, signal);
  const logEnds = await barrier.allStored(signal);
  const storedAt = wallClockMs();

  begin('forget');
  const forget = createForget(people, parts);
  // Repeated because Redis may have lost its last second of writes.
  await raiseFences(records, people.guards, fences);
  await storeCounts(parts, batch, await forget.identities(persons, await barrier.linkCommits()));
  await storeCounts(parts, batch, await forget.consents(persons));
  let changedMs = performance.now();

  begin('sweep');
  await rows.putTargets(batchId, fences);
  await rows.awaitInserts(signal);
  await sweepAll(parts, batch, signal);
  if (await forget.restoreConsents(await rows.findConsents(batchId))) changedMs = performance.now();

  begin('put back');
  await parts.republishLater(batchId);

  begin('receipt');
  await pause(Math.max(0, REDIS_ON_DISK_MS - (performance.now() - changedMs)), signal);
  const verified = { ...NO_ROWS, ...(await forget.verify(persons)) };
  const times = { fencedAt, visiblyErasedAt: wallClockMs(), logExpiresAt: storedAt + LOG_EXPIRES_AFTER_MS };
  const receipts = persons.flatMap((person) => toReceipts(batch, person, { ...times, verified, logEnds }));
  await records.putReceipts(receipts);
  return receipts;
}

/** Receipts also list stores that contained no rows. */
const NO_ROWS: Counts = Object.fromEntries(
  ERASED_TABLES.flatMap(({ name: table, clearing }) => [
    [storeNameOf({ table, column: '', as: 'own' }), 0],
    ...(clearing.by === 'sweep' ? clearing.carriedKeys : []).map(({ key: column }) => [
      storeNameOf({ table, column, as: 'carried' }),
      0,
    ]),
  ]),
);

async function sweepAll(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<void> {
  const { rows } = parts;
  const storeSweepCounts = async () => {
    const results = await rows.readFound(batch.batchId);
    await storeCounts(parts, batch, countRows(batch.persons, results));
  };
  // Includes the counts of an eraser that crashed after its sweep.
  await storeSweepCounts();
  for (let sweep = 1; ; sweep++) {
    signal.throwIfAborted();
    await rows.sweep(batch.batchId, signal);
    await storeSweepCounts();
    const survivors = await rows.findSurvivors(batch.batchId);
    if (survivors.length === 0) return;
    if (sweep === SWEEPS_MAX)
      throw new Error(`rows of ${survivors[0]!.table} remain after ${sweep} sweeps: a process is not checking fences`);
  }
}

/** Stores the counts so far because the next eraser would find fewer rows. */
async function storeCounts({ records }: BatchParts, batch: Batch, found: Found): Promise<void> {
  for (const [{ closures }, counts] of found)
    for (const { request } of closures) {
      const id = request.erasureId.toString('hex');
      batch.deleted.set(id, mergeCounts(batch.deleted.get(id) ?? {}, counts));
    }
  await records.putProgress(toProgress(batch));
}

function toProgress({ batchId, persons, deleted }: Batch): ErasureProgress[] {
  return persons.flatMap(({ closures }) =>
    closures.map(({ request: { erasureId, environmentId, cutoffAt }, keys: closureKeys }) => {
      const found = deleted.get(erasureId.toString('hex')) ?? {};
      return { batchId, erasureId, environmentId, cutoffAt, closureKeys, deleted: found };
    }),
  );
}

type Findings = Pick<ErasureReceipt, 'fencedAt' | 'visiblyErasedAt' | 'logExpiresAt' | 'verified' | 'logEnds'>;

function toReceipts({ deleted }: Batch, { closures }: ErasedPerson, findings: Findings): ErasureReceipt[] {
  return closures.map(({ keys, request: { erasureId, environmentId, cutoffAt, requestedAt: acceptedAt, traceId } }) => {
    const request = { erasureId, environmentId, cutoffAt, acceptedAt, traceId };
    const closure = { closureHash: hashClosure(keys), closureCount: keys.length };
    const pending = { physicallyErasedAt: null, logExpiredAt: null };
    const found = { ...NO_ROWS, ...sumNodes(deleted.get(erasureId.toString('hex')) ?? {}) };
    return { ...request, ...closure, ...findings, ...pending, deleted: found };
  });
}

type Found = ReadonlyMap<ErasedPerson, Counts>;

/** Key families in `infra/redis/README.md`. */
const [IDENTITIES, CONSENTS] = ['redis.i', 'redis.c'];

/** Creates the steps in Redis, all of which are idempotent. @throws store faults */
function createForget({ graph, consents }: Pick<People, 'graph' | 'consents'>, { generation }: { generation: number }) {
  return {
    /**
     * Removes identities from the graph and published decisions from the outbox.
     * @param commits the linker's committed offsets by partition
     */
    async identities(persons: readonly ErasedPerson[], commits: ReadonlyMap<number, number>): Promise<Found> {
      const environmentIds = new Set(persons.map(({ environmentId }) => environmentId));
      for (const [partition, committed] of commits)
        await graph.trim({ generation, partition }, committed - 1, environmentIds);
      // All facts from earlier generations have been decided.
      for (let earlier = 0; earlier < generation; earlier++)
        for (const partition of commits.keys())
          await graph.trim({ generation: earlier, partition }, Number.MAX_SAFE_INTEGER, environmentIds);
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const { environmentId, closures, identities } = person;
        const { erasureId } = closures[0]!.request;
        const keys = identities.map(({ key }) => key);
        found.set(person, { [IDENTITIES]: await graph.forget({ environmentId, erasureId }, keys) });
      }
      return found;
    },
    async consents(persons: readonly ErasedPerson[]): Promise<Found> {
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const erased = await findConsents(consents, person);
        found.set(person, { [CONSENTS]: await consents.forget(person.environmentId, erased) });
      }
      return found;
    },
    /** Restores later consents that a removed consent had superseded. @returns whether Redis was changed */
    async restoreConsents(kept: readonly KeptConsent[]): Promise<boolean> {
      let isChanged = false;
      for (const { status, ...consent } of kept) {
        const outcome = await consents.apply({ ...consent, status: status as ChosenStatus });
        isChanged ||= outcome === 'applied';
      }
      return isChanged;
    },
    /** @returns zero for each store @throws if any data remains */
    async verify(persons: readonly ErasedPerson[]): Promise<Counts> {
      for (const person of persons) {
        const areLinked = await Promise.all(person.identities.map((identity) => isLinked(graph, identity)));
        if (areLinked.includes(true)) throw new Error('the graph contains an erased identity');
        if ((await findConsents(consents, person)).length > 0) throw new Error('Redis contains an erased consent');
      }
      return { [IDENTITIES]: 0, [CONSENTS]: 0 };
    },
  };
}

/**
 * Whether the graph contains a link up to the cut-off. Later links may exist because the hold of another erasure with
 * a later cut-off does not delay them.
 */
async function isLinked(graph: People['graph'], { environmentId, key, cutoffMs }: ErasureFence) {
  if ((await graph.rootOf(environmentId, key)) === null) return false;
  const members = await graph.membersOf(environmentId, key);
  return members.some((member) => member.key.equals(key) && member.linkedAt <= cutoffMs);
}

/** Finds a person's stored consents up to the cut-off. */
async function findConsents(consents: People['consents'], { environmentId, identities }: ErasedPerson) {
  const cutoffs = new Map(identities.map(({ key, cutoffMs }) => [key.toString('latin1'), cutoffMs]));
  const stored = await consents.readStored(
    environmentId,
    identities.map(({ key }) => key),
  );
  return stored.filter(({ identityKey, receivedAt }) => receivedAt <= cutoffs.get(identityKey.toString('latin1'))!);
}

/** Counts by store: `clickhouse.events`, `clickhouse.events.anonymous_key`, `redis.i`. */
type Counts = Readonly<Record<string, number>>;

/**
 * Counts are stored separately for each node, because `mergeCounts` compares counts of the same rows. A sweep may delete the
 * rows of one node and fail on another.
 */
const onNode = (store: string, node: number): string => (node === 0 ? store : `${store}@${node}`);

function sumNodes(counts: Counts): Counts {
  const sums: Record<string, number> = {};
  for (const [name, rows] of Object.entries(counts)) {
    const [store = ''] = name.split('@');
    sums[store] = (sums[store] ?? 0) + rows;
  }
  return sums;
}

/**
 * Counts the found rows per person. A row that contains two identities of a person is counted once; a row that belongs
 * to two persons is counted for each of them.
 */
function countRows(persons: readonly ErasedPerson[], results: readonly SweepResult[]): Found {
  const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
  const named = persons.flatMap((person) => person.identities.map((identity) => ({ person, ...identity })));
  const byName = new Map(named.map(({ person, environmentId, key }) => [nameOf(environmentId, key), person]));
  const personOf = (environmentId: string, key: Buffer) => byName.get(nameOf(environmentId, key));
  const counts = new Map(persons.map((person): [ErasedPerson, Record<string, number>] => [person, {}]));
  const add = (person: ErasedPerson | undefined, name: string, rows: number) => {
    if (person === undefined) return;
    const personCounts = counts.get(person)!;
    personCounts[name] = (personCounts[name] ?? 0) + rows;
  };
  for (const [node, { found, shared }] of results.entries()) {
    for (const rows of found) add(personOf(rows.environmentId, rows.key), onNode(storeNameOf(rows), node), rows.rows);
    for (const { environmentId, keys, table, rows } of shared) {
      const name = onNode(storeNameOf({ table, column: '', as: 'own' }), node);
      for (const [person, names] of Map.groupBy(keys, (key) => personOf(environmentId, key)))
        add(person, name, -(names.length - 1) * rows);
    }
  }
  return counts;
}

/** Merges two counts of the same rows, one of which may be incomplete. */
function mergeCounts(a: Counts, b: Counts): Counts {
  const stores = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...stores].sort().map((store) => [store, Math.max(a[store] ?? 0, b[store] ?? 0)]));
}
