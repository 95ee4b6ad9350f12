import { randomBytes } from 'node:crypto';
import {
  createFences,
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
  type NotedRows,
} from '@playline/erasure';
import type { ChosenStatus, HoldName, People } from '@playline/people';
import { pauseOrThrow } from '@playline/stores';
import { type Closure, type ErasedPerson, type FoundClosure, isHeavy, takeLinks, toPersons } from './persons.ts';
import { TooManyLinksError } from './resolve.ts';
import { holdAll, type SettleParts, settleClosures, toId } from './settle.ts';

/** Blanked rows are counted under their column, deleted rows under their table. */
const storeNameOf = ({ table, column, as }: Pick<FoundRows, 'table' | 'column' | 'as'>): string =>
  as === 'own' ? `clickhouse.${table}` : `clickhouse.${table}.${column}`;

export interface BatchParts extends SettleParts {
  /** Publishes again the links that are later than the erasure and left the graph with the person. */
  readonly putBack: (batchId: Buffer) => Promise<void>;
  /** Generation of the link topic. */
  readonly generation: number;
  readonly wallClockMs: () => number;
  /** Called when a step begins. */
  readonly onStep?: (step: Step) => void;
}

/** In the order in which they are done. */
export type Step = 'resolve' | 'fence' | 'wait for the log' | 'forget' | 'sweep' | 'put back' | 'receipt' | 'release';

/** Erasures that are done together. */
export interface Batch {
  /** 16 random bytes. */
  readonly batchId: Buffer;
  /** Without persons who have receipts already. */
  readonly persons: readonly ErasedPerson[];
  /** Every erasure of the batch. */
  readonly names: readonly HoldName[];
  /** What was found so far, by erasure id in hexadecimal. */
  readonly deleted: Map<string, Counts>;
}

/**
 * Redis writes its log to the disk every second, so changes older than this survive the loss of its machine. Counted
 * from the last change that a batch makes.
 */
const REDIS_ON_DISK_MS = 2_000;
/** A row that survives this many sweeps comes from a writer that ignores fences. */
const SWEEPS_MAX = 10;

/** Which requests are left out of a batch. */
export interface BatchBounds {
  /**
   * Called with the requests about people with so many links that they would delay the others. They are left out; without
   * this function they are not. May be called several times.
   */
  readonly onHeavy?: (requests: readonly ErasureRequest[]) => void;
}

/**
 * Links that are held in memory while a batch is begun, some 300 bytes each. A batch of heavy requests may be begun at
 * the same time as one of others. A person of a thousand identities, the limit of the graph, has 499,500 pairs.
 */
const LINKS_MAX = 100_000;
const HEAVY_LINKS_MAX = 500_000;
/** Identities of one batch, some 50 MB. A batch of a thousand ordinary people has a few thousand. */
const IDENTITIES_MAX = 200_000;

/**
 * Begins a batch: finds out who is erased, places holds on all of their identities, and stores the progress. Nothing is
 * erased yet. If the eraser dies before it stores the progress, the batch begins anew. Requests that do not fit are left
 * for a later batch.
 * @returns null when no request can be done now
 * @throws whatever the stores throw; then it may be called again
 */
export async function beginBatch(
  parts: BatchParts,
  requests: readonly ErasureRequest[],
  signal: AbortSignal,
  { onHeavy }: BatchBounds = {},
): Promise<Batch | null> {
  parts.onStep?.('resolve');
  const settled =
    onHeavy === undefined
      ? await settleClosures(parts, requests, HEAVY_LINKS_MAX, signal)
      : await settleLight(parts, requests, onHeavy, signal);
  const closures = takeBounded(settled);
  if (closures.length === 0) return null;
  const names = closures.map(({ request }) => request);
  // Without the links, which would stay in memory until the batch is finished.
  const persons = toPersons(closures.map(({ request, keys }) => ({ request, keys })));
  const batch: Batch = { batchId: randomBytes(16), persons, names, deleted: new Map() };
  // Stored for later requests about linked people, and for checks of the receipt.
  await parts.records.putFound([...takeLinks(closures)].flatMap(toFound));
  await parts.records.putProgress(toProgress(batch));
  await assertAlone(parts, batch);
  return batch;
}

/** Settles the requests that are about few identities, and reports the others. */
async function settleLight(
  parts: BatchParts,
  requests: readonly ErasureRequest[],
  onHeavy: NonNullable<BatchBounds['onHeavy']>,
  signal: AbortSignal,
): Promise<readonly FoundClosure[]> {
  for (let left = requests; left.length > 0; ) {
    const found = await settleClosures(parts, left, LINKS_MAX, signal).catch((fault: unknown) => {
      if (fault instanceof TooManyLinksError) return fault;
      throw fault;
    });
    const isTooMuch = found instanceof TooManyLinksError;
    const heavy = isTooMuch ? found.heavy : found.filter(({ keys }) => isHeavy(keys)).map(({ request }) => request);
    if (isTooMuch && heavy.length === 0 && left.length > 1) throw found;
    // A single request with too many links is heavy, whatever its links are.
    const leftOut = isTooMuch && left.length === 1 ? left : heavy;
    if (leftOut.length > 0) onHeavy(leftOut);
    if (!isTooMuch) return found.filter(({ keys }) => !isHeavy(keys));
    left = left.filter((request) => !leftOut.includes(request));
  }
  return [];
}

/** Another process may have begun these erasures while this one was paused. If each sees the other, both withdraw. */
async function assertAlone({ records }: BatchParts, { batchId, names }: Batch): Promise<void> {
  const ids = new Set(names.map(toId));
  const isOther = (noted: ErasureProgress) => ids.has(toId(noted)) && !noted.batchId.equals(batchId);
  if (!(await records.readProgress()).some(isOther)) return;
  await records.dropProgress(batchId);
  throw new Error('another process has noted erasures of this batch');
}

/** Adds the closure and its links. Without links the request's own members already show who was linked. */
function toFound([{ keys, request }, links]: readonly [FoundClosure, readonly FoundLink[]]): ErasureRequest[] {
  if (links.length === 0) return [];
  const subjects = new Set(request.subjectKeys.map((key) => key.toString('latin1')));
  return [{ ...request, memberKeys: keys.filter((key) => !subjects.has(key.toString('latin1'))), links }];
}

/** The first closures that fit into a batch, at least one. The others are done in a later one. */
function takeBounded(closures: readonly FoundClosure[]): readonly FoundClosure[] {
  let identities = 0;
  const end = closures.findIndex(({ keys }, at) => {
    identities += keys.length;
    return at > 0 && identities > IDENTITIES_MAX;
  });
  return end === -1 ? closures : closures.slice(0, end);
}

/**
 * Restores batches that were begun and not finished. They are read from the progress, because the closure cannot be
 * found again once the graph and the decisions are gone.
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
 * Erases everybody of a batch from every store and stores a receipt for each request. Every step may be repeated, so an
 * interrupted batch is done again from its beginning.
 * @throws whatever the stores throw; then it may be called again
 */
export async function finishBatch(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<ErasureReceipt[]> {
  const receipts = batch.persons.length === 0 ? [] : await eraseAll(parts, batch, signal);
  parts.onStep?.('release');
  // The receipt is stored before the release, because a request that is read again looks for it.
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
  const { raise } = createFences(records, people.guards);
  begin('fence');
  await holdAll(
    parts,
    persons.flatMap(({ closures }) => closures),
  );
  const fences = persons.flatMap(({ identities }) => identities);
  await raise(fences);
  const fencedAt = wallClockMs();

  begin('wait for the log');
  await pause(FENCES_KNOWN_WITHIN_MS, signal);
  const logEnds = await barrier.allStored(signal);
  const storedAt = wallClockMs();

  begin('forget');
  const forget = createForget(people, parts);
  // Again, because Redis may have lost its last second.
  await raise(fences);
  await note(parts, batch, await forget.identities(persons, await barrier.linkCommits()));
  await note(parts, batch, await forget.consents(persons));
  let changedMs = performance.now();

  begin('sweep');
  await rows.putTargets(batchId, fences);
  await rows.awaitInserts(signal);
  await sweepAll(parts, batch, signal);
  if (await forget.restoreLater(await rows.findConsents(batchId))) changedMs = performance.now();

  begin('put back');
  await parts.putBack(batchId);

  begin('receipt');
  await pause(Math.max(0, REDIS_ON_DISK_MS - (performance.now() - changedMs)), signal);
  const verified = { ...NO_ROWS, ...(await forget.verify(persons)) };
  const times = { fencedAt, visiblyErasedAt: wallClockMs(), logExpiresAt: storedAt + LOG_EXPIRES_AFTER_MS };
  const receipts = persons.flatMap((person) => toReceipts(batch, person, { ...times, verified, logEnds }));
  await records.putReceipts(receipts);
  return receipts;
}

/** Every place of a sweep, with 0: a receipt also lists places where nothing was found. */
const NO_ROWS: Counts = Object.fromEntries(
  ERASED_TABLES.flatMap(({ name: table, clearing }) => [
    [storeNameOf({ table, column: '', as: 'own' }), 0],
    ...(clearing.by === 'sweep' ? clearing.carried : []).map(({ key: column }) => [
      storeNameOf({ table, column, as: 'carried' }),
      0,
    ]),
  ]),
);

/** Sweeps until nothing is left that a query would find. */
async function sweepAll(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<void> {
  const { rows } = parts;
  const noteRows = async () => {
    const noted = await rows.readNoted(batch.batchId);
    await note(parts, batch, countRows(batch.persons, noted));
  };
  // An earlier eraser may have died after a sweep and before it stored the counts, so these are stored first.
  await noteRows();
  for (let sweep = 1; ; sweep++) {
    signal.throwIfAborted();
    await rows.sweep(batch.batchId, signal);
    await noteRows();
    const left = await rows.findSurvivors(batch.batchId);
    if (left.length === 0) return;
    if (sweep === SWEEPS_MAX) throw new Error(`rows of ${left[0]!.table} are still there after ${sweep} sweeps`);
  }
}

/** Stores the counts so far. An eraser that takes over would find less, because some rows are deleted by then. */
async function note({ records }: BatchParts, batch: Batch, found: ReadonlyMap<ErasedPerson, Counts>): Promise<void> {
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
    const open = { physicallyErasedAt: null, logExpiredAt: null };
    const found = { ...NO_ROWS, ...deleted.get(erasureId.toString('hex')) };
    return { ...request, ...closure, ...findings, ...open, deleted: found };
  });
}

/** What was removed from Redis, for each person. */
type Found = ReadonlyMap<ErasedPerson, Counts>;

/** What an erasure does in Redis. Every step may be repeated. @throws whatever the store throws */
interface Forget {
  /**
   * Removes the identities from the graph, and published decisions from its outbox.
   * @param commits the linker's commits by partition
   */
  identities(persons: readonly ErasedPerson[], commits: ReadonlyMap<number, number>): Promise<Found>;
  /** Removes the consents received up to the cut-off. */
  consents(persons: readonly ErasedPerson[]): Promise<Found>;
  /**
   * Stores later consents that a removed one had superseded.
   * @param kept consents of the erased people that ClickHouse still has after the sweep
   * @returns whether Redis was changed
   */
  restoreLater(kept: readonly KeptConsent[]): Promise<boolean>;
  /** Checks that nothing is left. @returns zero for each place @throws Error when anything is left */
  verify(persons: readonly ErasedPerson[]): Promise<Counts>;
}

/** Places of Redis, named as in `infra/redis/README.md`. */
const [IDENTITIES, CONSENTS] = ['redis.i', 'redis.c'];

/** Builds the steps. @param generation of the link topic */
function createForget(
  { graph, consents }: Pick<People, 'graph' | 'consents'>,
  { generation }: { generation: number },
): Forget {
  return {
    async identities(persons, commits) {
      const environmentIds = new Set(persons.map(({ environmentId }) => environmentId));
      for (const [partition, committed] of commits)
        await graph.trim({ generation, partition }, committed - 1, environmentIds);
      // All facts of an earlier generation were decided before this one began.
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
    async consents(persons) {
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const erased = await findConsents(consents, person);
        found.set(person, { [CONSENTS]: await consents.forget(person.environmentId, erased) });
      }
      return found;
    },
    async restoreLater(kept) {
      let isChanged = false;
      for (const { status, ...consent } of kept) {
        const outcome = await consents.apply({ ...consent, status: status as ChosenStatus });
        isChanged ||= outcome === 'applied';
      }
      return isChanged;
    },
    async verify(persons) {
      for (const person of persons) {
        const left = await Promise.all(person.identities.map((identity) => isLinked(graph, identity)));
        if (left.includes(true)) throw new Error('an identity is in the graph again');
        if ((await findConsents(consents, person)).length > 0) throw new Error('a consent is stored again');
      }
      return { [IDENTITIES]: 0, [CONSENTS]: 0 };
    },
  };
}

/**
 * Whether an identity is in the graph because of a link up to the cut-off. Later links may be in the graph already:
 * another erasure of the person with a later cut-off lets links up to that cut-off pass.
 */
async function isLinked(graph: People['graph'], { environmentId, key, cutoffMs }: ErasureFence) {
  if ((await graph.rootOf(environmentId, key)) === null) return false;
  const members = await graph.membersOf(environmentId, key);
  return members.some((member) => member.key.equals(key) && member.linkedAt <= cutoffMs);
}

/** Stored consents of a person, without the later ones. */
async function findConsents(consents: People['consents'], { environmentId, identities }: ErasedPerson) {
  const cutoffs = new Map(identities.map(({ key, cutoffMs }) => [key.toString('latin1'), cutoffMs]));
  const stored = await consents.readStored(
    environmentId,
    identities.map(({ key }) => key),
  );
  return stored.filter(({ identityKey, receivedAt }) => receivedAt <= cutoffs.get(identityKey.toString('latin1'))!);
}

/** Numbers by store and place: `clickhouse.events`, `clickhouse.events.anonymous_key`, `redis.i`. */
type Counts = Readonly<Record<string, number>>;

/**
 * Counts the rows that a sweep found of each person, each row once. A row that names one person twice, such as a link,
 * is reported twice and still counted once. A row about two persons counts for both.
 */
function countRows(persons: readonly ErasedPerson[], { found, shared }: NotedRows): ReadonlyMap<ErasedPerson, Counts> {
  const personOf = indexPersons(persons);
  const counts = new Map(persons.map((person): [ErasedPerson, Record<string, number>] => [person, {}]));
  const add = (person: ErasedPerson, place: string, rows: number) => {
    const own = counts.get(person)!;
    own[place] = (own[place] ?? 0) + rows;
  };
  for (const rows of found) {
    const person = personOf(rows.environmentId, rows.key);
    if (person !== undefined) add(person, storeNameOf(rows), rows.rows);
  }
  for (const { environmentId, keys, table, rows } of shared)
    for (const [person, names] of Map.groupBy(keys, (key) => personOf(environmentId, key)))
      if (person !== undefined) add(person, storeNameOf({ table, column: '', as: 'own' }), -(names.length - 1) * rows);
  return counts;
}

/** Builds the look-up of the person of an identity. An identity belongs to one person. */
function indexPersons(
  persons: readonly ErasedPerson[],
): (environmentId: string, key: Buffer) => ErasedPerson | undefined {
  const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
  const byKey = new Map(
    persons.flatMap((person) =>
      person.identities.map(({ environmentId, key }) => [nameOf(environmentId, key), person] as const),
    ),
  );
  return (environmentId, key) => byKey.get(nameOf(environmentId, key));
}

/** Merges two counts of the same rows, as after an eraser that died in between: the larger number of each place. */
function mergeCounts(one: Counts, other: Counts): Counts {
  const places = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...places].sort().map((place) => [place, Math.max(one[place] ?? 0, other[place] ?? 0)]));
}
