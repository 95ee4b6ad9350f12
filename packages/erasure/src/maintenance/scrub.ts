/** Searches for data of all erased people, deletes rows that reappeared, and removes deleted rows from disk. */
import { pauseOrThrow, StoreFault } from '@playline/stores';
import { enforceFences, type FenceEnforcer } from '../fences.ts';
import type { ErasureReceipt, ErasureRecords } from '../records.ts';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { dropStaleBatches, type TargetBatches, type TargetBatchesOptions, withTargets } from './batches.ts';
import { KnownKeys } from './verify-receipt.ts';

/** Merges move rows, so up to three passes are normal. More passes mean that rows keep arriving. */
const PASSES_MAX = 10;

export interface ScrubOptions extends Omit<TargetBatchesOptions, 'rows'> {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'sweep' | 'findSurvivors' | 'readBatches' | 'dropTargets'>;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readFinished'>;
  readonly people: FenceEnforcer;
  /** Called with the survivors before each sweep. A row that a merge moved may be reported several times. */
  readonly onSurvivors?: (survivors: readonly Survivors[], pass: number) => void;
  /** Stops the scrub between two steps; passed to `sweep`. */
  readonly signal?: AbortSignal;
}

export interface ScrubResult {
  /** Number of searched fences. A fence that was set twice is counted twice until ClickHouse merges its rows. */
  readonly fences: number;
  /** Number of fences of unfinished erasures, whose rows are not survivors. */
  readonly unfinished: number;
  /** Survivors found by the first pass. */
  readonly found: readonly Survivors[];
  /** Deleted rows. A row that a merge moved may be counted several times. */
  readonly swept: readonly Survivors[];
}

/**
 * Deletes rows, links and consents that fences should have refused, for all erased people. Safe to retry and to run
 * concurrently with erasers and other scrubs.
 * @throws StoreFault, including when rows keep arriving; the signal's reason if it is aborted
 */
export async function scrub(options: ScrubOptions): Promise<ScrubResult> {
  const { rows, records, signal } = options;
  await dropStaleBatches({ rows, wallClockMs: options.wallClockMs });
  return withTargets(options, async (batches) => {
    // Read before the fences, so that every listed erasure has already deleted its rows.
    const finished = await records.readFinished();
    let [fences, unfinished] = [0, 0];
    for await (const fence of records.readFences(signal && { signal })) {
      const isFinished = finished.has(fence.erasureId.toString('hex'));
      if (isFinished) await batches.add(fence);
      fences += Number(isFinished);
      unfinished += Number(!isFinished);
    }
    await batches.flush();
    const inPeople = await scrubPeople(options, finished);
    const found = [...inPeople];
    const swept = [...inPeople];
    for (const batch of batches.ids) {
      const outcome = await scrubBatch(options, batches, batch);
      for (const each of outcome.found) found.push(each);
      for (const each of outcome.swept) swept.push(each);
    }
    return { fences, unfinished, found: toSurvivors(found), swept: toSurvivors(swept) };
  });
}

/** Enforces the fences of finished erasures in Redis. */
async function scrubPeople(
  { records, people, signal, onSurvivors }: ScrubOptions,
  finished: ReadonlySet<string>,
): Promise<readonly Survivors[]> {
  const ofFinished = async function* () {
    for await (const fence of records.readFences(signal && { signal }))
      if (finished.has(fence.erasureId.toString('hex'))) yield fence;
  };
  const survivors: Survivors[] = [];
  for (const [environmentId, { links, consents }] of await enforceFences(people, ofFinished())) {
    const common = { column: '', as: 'own', environmentId } as const;
    if (links > 0) survivors.push({ ...common, table: 'redis.i', rows: links });
    if (consents > 0) survivors.push({ ...common, table: 'redis.c', rows: consents });
  }
  if (survivors.length > 0) onSurvivors?.(survivors, 1);
  return survivors;
}

async function scrubBatch({ rows, signal, onSurvivors }: ScrubOptions, batches: TargetBatches, batch: Buffer) {
  const swept: Survivors[] = [];
  let found: readonly Survivors[] = [];
  for (let pass = 1; ; pass++) {
    signal?.throwIfAborted();
    const survivors = toSurvivors(await rows.findSurvivors(batch));
    if (pass === 1) found = survivors;
    if (survivors.length === 0) return { found, swept };
    onSurvivors?.(survivors, pass);
    if (pass === PASSES_MAX) {
      const message = `Rows of erased people keep arriving: all ${PASSES_MAX} passes found rows`;
      throw new StoreFault(message, { kind: 'transient', code: 'SURVIVORS' });
    }
    const sweep = rows.sweep(batch, signal).catch((fault: unknown) => {
      // A mutation may still be running and needs its targets.
      batches.keep(batch);
      throw fault;
    });
    for (const each of toSurvivors(await sweep)) swept.push(each);
  }
}

/** Number of remaining rows of erased people. Logged, so it must not contain keys. */
export interface Survivors extends Pick<FoundRows, 'table' | 'column' | 'as' | 'environmentId'> {
  readonly rows: number;
}

/** Sums the found rows by table, column and environment. */
export function toSurvivors(found: readonly Survivors[]): Survivors[] {
  const sums = new Map<string, Survivors>();
  for (const { table, column, as, environmentId, rows } of found) {
    const name = `${table}.${column} ${as} ${environmentId}`;
    sums.set(name, { table, column, as, environmentId, rows: rows + (sums.get(name)?.rows ?? 0) });
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, sum]) => sum);
}

/** Replaced files remain on disk for eight minutes. */
const POLL_MS = 10_000;
const POLLS_MAX = 180;

export interface RemovalOptions extends Omit<TargetBatchesOptions, 'rows'> {
  readonly rows: Pick<
    ErasureRows,
    'putTargets' | 'findOnDisk' | 'removeDeleted' | 'countReplaced' | 'readBatches' | 'dropTargets'
  >;
  readonly records: Pick<
    ErasureRecords,
    'readFences' | 'readFinished' | 'readOpenReceipts' | 'readRequests' | 'putReceipts'
  >;
  /** Called with rows that are still in files after the removal, in which case no receipt is marked. */
  readonly onFoundOnDisk?: (survivors: readonly Survivors[]) => void;
  /** Called after each poll that finds replaced files. */
  readonly onReplaced?: (files: number) => void;
  /** Waits between polls. Default: ten seconds. */
  readonly pause?: (signal?: AbortSignal) => Promise<void>;
  /** Stops the removal between two steps or while it waits for a mutation. */
  readonly signal?: AbortSignal;
}

export interface Removal {
  /** Number of searched fences. */
  readonly fences: number;
  readonly foundOnDisk: readonly Survivors[];
  /** Number of receipts on which `physicallyErasedAt` was set. */
  readonly marked: number;
  /** Number of receipts left for the next removal because another erasure of their identities is unfinished. */
  readonly deferred: number;
}

/**
 * Rewrites all files that contain deleted rows, waits several minutes until the replaced files are deleted, searches
 * the remaining files for people whose erasures had finished, and marks their receipts. Run `scrub` first because
 * no receipt is marked while a survivor remains. Safe to retry.
 * @throws StoreFault, including when replaced files remain or fences are missing; the signal's reason if aborted
 */
export async function removeFromDisk(options: RemovalOptions): Promise<Removal> {
  const { rows, signal } = options;
  await dropStaleBatches({ rows, wallClockMs: options.wallClockMs });
  return withTargets(options, async (batches) => {
    // Read before the removal because rows that are erased while it runs are only masked.
    const { fences, covered, deferred } = await putErasedTargets(options, batches);
    signal?.throwIfAborted();
    const removedAtMs = await rows.removeDeleted(signal);
    await awaitReplaced(options, removedAtMs);
    const found: Survivors[] = [];
    for (const batch of batches.ids) {
      signal?.throwIfAborted();
      for (const each of await rows.findOnDisk(batch)) found.push(each);
    }
    const foundOnDisk = toSurvivors(found);
    if (foundOnDisk.length > 0) options.onFoundOnDisk?.(foundOnDisk);
    const marked = foundOnDisk.length > 0 ? 0 : await mark(options, covered);
    return { fences, foundOnDisk, marked, deferred };
  });
}

/**
 * Stores the targets: fences of finished erasures, and keys in the requests of unmarked receipts. A receipt is covered
 * if its hash matches the searched keys or if a later, finished erasure replaced its missing fences.
 */
async function putErasedTargets({ records, signal }: RemovalOptions, batches: TargetBatches) {
  // Read before the fences, so that all fences of these receipts exist.
  const receipts = (await records.readOpenReceipts()).filter(isUnmarked);
  const finished = await records.readFinished();
  const requests = await records.readRequests(receipts.map(({ erasureId }) => erasureId));
  const requestOf = new Map(requests.map((request) => [request.erasureId.toString('hex'), request]));
  const known = new Map(
    receipts.map(({ erasureId }) => {
      const id = erasureId.toString('hex');
      return [id, new KnownKeys(requestOf.get(id))];
    }),
  );
  const unfinishedIn = new Set<string>();
  let fences = 0;
  for await (const fence of records.readFences(signal && { signal })) {
    const id = fence.erasureId.toString('hex');
    known.get(id)?.add(fence.key);
    if (finished.has(id)) {
      fences++;
      await batches.add(fence);
    } else unfinishedIn.add(fence.environmentId);
  }
  if (fences === 0 && receipts.length > 0)
    throw new StoreFault('There are receipts but no fences, so nothing was searched', {
      kind: 'permanent',
      code: 'NO_TARGETS',
    });
  for (const { erasureId, environmentId, cutoffAt: cutoffMs } of receipts)
    for (const key of known.get(erasureId.toString('hex'))!.all) await batches.add({ environmentId, key, cutoffMs });
  await batches.flush();
  const isCovered = (receipt: ErasureReceipt) =>
    known.get(receipt.erasureId.toString('hex'))!.compare(receipt) === 'matches' ||
    !unfinishedIn.has(receipt.environmentId);
  const covered = new Set(receipts.filter(isCovered).map(({ erasureId }) => erasureId.toString('hex')));
  return { fences, covered, deferred: receipts.length - covered.size };
}

const isUnmarked = ({ physicallyErasedAt }: ErasureReceipt) => physicallyErasedAt === null;

async function awaitReplaced(
  { rows, signal, onReplaced, pause = (until) => pauseOrThrow(POLL_MS, until) }: RemovalOptions,
  untilMs: number,
): Promise<void> {
  for (let poll = 1; ; poll++) {
    signal?.throwIfAborted();
    const files = await rows.countReplaced(untilMs);
    if (files === 0) return;
    onReplaced?.(files);
    if (poll === POLLS_MAX)
      throw new StoreFault(`${files} replaced files are still on disk`, { kind: 'transient', code: 'REPLACED' });
    await pause(signal);
  }
}

async function mark({ records, wallClockMs }: RemovalOptions, covered: ReadonlySet<string>): Promise<number> {
  const physicallyErasedAt = wallClockMs();
  // Reread because `logExpiredAt` may have been set since the first read.
  const open = (await records.readOpenReceipts()).filter(isUnmarked);
  const receipts = open.filter(({ erasureId }) => covered.has(erasureId.toString('hex')));
  await records.putReceipts(receipts.map((receipt) => ({ ...receipt, physicallyErasedAt })));
  return receipts.length;
}
