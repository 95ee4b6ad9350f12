import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createFences,
  type ErasureProgress,
  type ErasureReceipt,
  type ErasureRecords,
  type ErasureRequest,
  type ErasureRows,
  FENCES_KNOWN_WITHIN_MS,
  hashClosure,
  IDENTITY_WINDOW_MS,
  SWEPT_TABLES,
} from '@playline/erasure';
import type { ErasureHold, HoldName, People } from '@playline/people';
import { type Counts, countRows, indexPersons, mergeCounts, placeOf } from './counts.ts';
import { createForget } from './forget.ts';
import type { LogBarrier } from './log-barrier.ts';
import type { ErasedPerson } from './persons.ts';
import { resolvePersons } from './resolve.ts';

export interface BatchParts {
  readonly people: Pick<People, 'graph' | 'guards' | 'consents'>;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly barrier: LogBarrier;
  /** Publishes links again that are later than the erasure and went with the person. */
  readonly putBack: (batchId: Buffer) => Promise<void>;
  /** Generation of the link topic. */
  readonly generation: number;
  readonly wallClockMs: () => number;
  /** Waits; by itself for as long as it is told. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Told when a step begins. */
  readonly onStep?: (step: Step) => void;
}

/** In the order in which they are done. */
export type Step = 'resolve' | 'fence' | 'wait for the log' | 'forget' | 'sweep' | 'put back' | 'receipt' | 'release';

/** Erasures that are done together. */
export interface Batch {
  /** 16 random bytes. */
  readonly batchId: Buffer;
  /** Without those whose receipts stand already. */
  readonly persons: readonly ErasedPerson[];
  /** Every erasure of the batch. */
  readonly names: readonly HoldName[];
  /** What was found so far, by erasure id in hexadecimal. */
  readonly deleted: Map<string, Counts>;
}

/** Redis writes its log to the disk every second: what it did that long ago survives the loss of its machine. */
const REDIS_ON_DISK_MS = 2_000;
/** A row that survives so many sweeps is written by somebody who knows no fences. */
const SWEEPS_MAX = 10;

/**
 * Begins a batch: finds out who is erased, holds every identity of theirs, and notes it all. Nothing is erased yet; an
 * eraser that dies before the note begins anew.
 * @throws whatever the stores throw; then it may be called again
 */
export async function beginBatch(parts: BatchParts, requests: readonly ErasureRequest[], signal: AbortSignal) {
  parts.onStep?.('resolve');
  const persons = await settlePersons(parts, requests, signal);
  const batchId = randomBytes(16);
  const batch: Batch = { batchId, persons, names: requests, deleted: new Map() };
  await parts.records.putProgress(toProgress(batch));
  return batch;
}

/**
 * Requests about one person with different cut-offs: a link between the two waits for the earlier hold, although the
 * later erasure is about it. So holds are raised to the latest, and who is erased is found out once more.
 */
async function settlePersons(parts: BatchParts, requests: readonly ErasureRequest[], signal: AbortSignal) {
  for (let before = ''; ; ) {
    await parts.barrier.linksStored(signal);
    const persons = await resolvePersons(parts.rows, requests);
    await assertNotBegun(parts, requests);
    await holdAll(parts, persons);
    const now = persons.map(({ keys }) => toHash(keys)).join();
    const isRaised = persons.some(({ requests: own, cutoffAt }) => own.some((each) => each.cutoffAt < cutoffAt));
    if (!isRaised || now === before) return persons;
    before = now;
  }
}

/**
 * Another process may have begun these erasures while this one was paused: decisions that its sweep has taken were not
 * found. It notes them before it sweeps, so this is asked behind the look for decisions.
 */
async function assertNotBegun({ records }: BatchParts, requests: readonly ErasureRequest[]): Promise<void> {
  const begun = new Set((await records.readProgress()).map(toId));
  if (requests.some((request) => begun.has(toId(request))))
    throw new Error('another process has begun erasures of this batch');
}

/**
 * Each erasure of a person holds all of it: whichever is let go first, the others keep later links waiting. A hold that
 * is gone was let go by another process, which has finished the erasure while this one was paused, or was lost with the
 * last second of Redis. Only what was lost is placed again: a receipt comes before the release, so it is there to be seen.
 */
async function holdAll(parts: BatchParts, persons: readonly ErasedPerson[]): Promise<void> {
  const { guards } = parts.people;
  const gone: ErasureHold[] = [];
  for (const { environmentId, cutoffAt: cutoffMs, keys, requests } of persons)
    for (const { erasureId } of requests) {
      const hold = { environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null };
      if (!(await guards.extend(hold))) gone.push(hold);
    }
  if (gone.length === 0) return;
  const unfinished = new Set((await parts.records.readUnfinished()).map(toId));
  if (gone.some((hold) => !unfinished.has(toId(hold))))
    throw new Error('another process has finished erasures of this batch');
  for (const hold of gone) await guards.place(hold);
}

/**
 * Takes up batches that were begun and not finished: who was erased cannot be found out again once the graph and the
 * decisions are gone.
 * @param unfinished requests without a receipt
 */
export function toBatches(progress: readonly ErasureProgress[], unfinished: readonly ErasureRequest[]): Batch[] {
  const requests = new Map(unfinished.map((request) => [request.erasureId.toString('hex'), request]));
  const byBatch = Map.groupBy(progress, ({ batchId }) => batchId.toString('hex'));
  return [...byBatch.values()].map((rows) => {
    const byPerson = Map.groupBy(rows, (row) => `${row.environmentId} ${toHash(row.closureKeys)}`);
    const persons = [...byPerson.values()].flatMap((own): ErasedPerson[] => {
      const { environmentId, cutoffAt, closureKeys: keys } = own[0]!;
      const asked = own.flatMap(({ erasureId }) => requests.get(erasureId.toString('hex')) ?? []);
      return asked.length === 0 ? [] : [{ environmentId, cutoffAt, keys, requests: asked }];
    });
    const deleted = new Map(rows.map((row): [string, Counts] => [row.erasureId.toString('hex'), row.deleted]));
    return { batchId: rows[0]!.batchId, persons, names: rows, deleted };
  });
}

/**
 * Erases everybody of a batch from every store and leaves a receipt for each request. Every step may be done again, so a
 * batch that was cut short anywhere is done from its beginning.
 * @throws whatever the stores throw; then it may be called again
 */
export async function finishBatch(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<ErasureReceipt[]> {
  const receipts = batch.persons.length === 0 ? [] : await eraseAll(parts, batch, signal);
  parts.onStep?.('release');
  // A receipt comes before its release: a request that is read again looks for it.
  for (const name of batch.names) await parts.people.guards.release(name);
  await parts.rows.dropTargets(batch.batchId);
  await parts.records.dropProgress(batch.batchId);
  return receipts;
}

async function eraseAll(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<ErasureReceipt[]> {
  const { rows, records, barrier, people, wallClockMs, pause = rest } = parts;
  const { batchId, persons } = batch;
  const begin = (step: Step) => {
    signal.throwIfAborted();
    parts.onStep?.(step);
  };
  const { raise } = createFences(records, people.guards);
  begin('fence');
  await holdAll(parts, persons);
  const fences = persons.flatMap(toFences);
  await raise(fences);
  const fencedAt = wallClockMs();

  begin('wait for the log');
  await pause(FENCES_KNOWN_WITHIN_MS, signal);
  const logEnds = await barrier.allStored(signal);
  const storedAt = wallClockMs();

  begin('forget');
  const forget = createForget(people, parts);
  // Once more: Redis may have lost its last second since.
  await raise(fences);
  await note(parts, batch, await forget.identities(persons, await barrier.linkCommits()));
  const forgottenMs = performance.now();

  begin('sweep');
  await rows.putTargets(batchId, fences);
  await rows.awaitInserts();
  await sweepAll(parts, batch, signal);
  const consents = { kept: await rows.findConsents(batchId), ends: logEnds.consents };
  await note(parts, batch, await forget.consents(persons, consents));

  begin('put back');
  await parts.putBack(batchId);

  begin('receipt');
  await pause(Math.max(0, REDIS_ON_DISK_MS - (performance.now() - forgottenMs)), signal);
  const verified = { ...NO_ROWS, ...(await forget.verify(persons, consents)) };
  const times = { fencedAt, visiblyErasedAt: wallClockMs(), logExpiresAt: storedAt + IDENTITY_WINDOW_MS };
  await tellFollowers(parts, batch);
  const receipts = persons.flatMap((person) =>
    toReceipts(batch, person, { ...times, verified, logEnds: logEnds.byName }),
  );
  await records.putReceipts(receipts);
  return receipts;
}

/**
 * Tells requests that came meanwhile whom this batch has found of the same person: they are about everybody who was
 * linked with their subject when they were made, and the decisions that say so are gone now.
 */
async function tellFollowers({ records }: BatchParts, { persons, names }: Batch): Promise<void> {
  // Of a batch that is noted it is known already whom it is about.
  const begun = new Set([...names, ...(await records.readProgress())].map(toId));
  const waiting = (await records.readUnfinished()).filter((request) => !begun.has(toId(request)));
  const personOf = indexPersons(persons);
  const told = waiting.flatMap((request) => {
    const known = [...request.subjectKeys, ...request.memberKeys];
    const theirs = new Set(known.flatMap((key) => personOf(request.environmentId, key) ?? []));
    const named = new Set(known.map(toText));
    const found = [...theirs].flatMap(({ keys }) => keys).filter((key) => !named.has(toText(key)));
    return found.length === 0 ? [] : [{ ...request, memberKeys: [...request.memberKeys, ...found] }];
  });
  await records.putRequests(told);
}

const toText = (key: Buffer) => key.toString('latin1');
const toHash = (keys: readonly Buffer[]) => hashClosure(keys).toString('hex');
const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');

const rest = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal });

/** Every place that a sweep looks into: one of which nothing is told was looked into and held nothing. */
const NO_ROWS: Counts = Object.fromEntries(
  SWEPT_TABLES.flatMap(({ name: table, clearing }) => [
    [placeOf({ table, column: '', as: 'own' }), 0],
    ...clearing.carried.map(({ key: column }) => [placeOf({ table, column, as: 'carried' }), 0]),
  ]),
);

/** Sweeps until nothing is left that a query would find. */
async function sweepAll(parts: BatchParts, batch: Batch, signal: AbortSignal): Promise<void> {
  const { rows } = parts;
  const noteRows = async () => {
    const noted = await rows.readNoted(batch.batchId);
    await note(parts, batch, countRows(batch.persons, noted));
  };
  // Of an eraser that died between its sweep and its note.
  await noteRows();
  for (let sweep = 1; ; sweep++) {
    signal.throwIfAborted();
    await rows.sweep(batch.batchId);
    await noteRows();
    const left = await rows.findSurvivors(batch.batchId);
    if (left.length === 0) return;
    if (sweep === SWEEPS_MAX) throw new Error(`rows of ${left[0]!.table} are still there after ${sweep} sweeps`);
  }
}

/** Keeps what was found, on the disk too: an eraser that takes over finds less. */
async function note({ records }: BatchParts, batch: Batch, found: ReadonlyMap<ErasedPerson, Counts>): Promise<void> {
  for (const [{ requests }, counts] of found)
    for (const { erasureId } of requests) {
      const id = erasureId.toString('hex');
      batch.deleted.set(id, mergeCounts(batch.deleted.get(id) ?? {}, counts));
    }
  await records.putProgress(toProgress(batch));
}

function toProgress({ batchId, persons, deleted }: Batch): ErasureProgress[] {
  return persons.flatMap(({ environmentId, cutoffAt, keys: closureKeys, requests }) =>
    requests.map(({ erasureId }) => {
      const found = deleted.get(erasureId.toString('hex')) ?? {};
      return { batchId, erasureId, environmentId, cutoffAt, closureKeys, deleted: found };
    }),
  );
}

function toFences({ environmentId, keys, cutoffAt: cutoffMs, requests }: ErasedPerson) {
  const { erasureId } = requests.reduce((latest, each) => (each.cutoffAt > latest.cutoffAt ? each : latest));
  return keys.map((key) => ({ environmentId, key, cutoffMs, erasureId }));
}

type Findings = Pick<ErasureReceipt, 'fencedAt' | 'visiblyErasedAt' | 'logExpiresAt' | 'verified' | 'logEnds'>;

function toReceipts({ deleted }: Batch, person: ErasedPerson, findings: Findings): ErasureReceipt[] {
  const { environmentId, cutoffAt, keys, requests } = person;
  const closure = { closureHash: hashClosure(keys), closureCount: keys.length };
  return requests.map(({ erasureId, requestedAt: acceptedAt, traceId }) => {
    const request = { erasureId, environmentId, cutoffAt, acceptedAt, traceId };
    const open = { physicallyErasedAt: null, logExpiredAt: null };
    const found = { ...NO_ROWS, ...deleted.get(erasureId.toString('hex')) };
    return { ...request, ...closure, ...findings, ...open, deleted: found };
  });
}
