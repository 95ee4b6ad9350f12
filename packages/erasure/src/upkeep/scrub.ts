import { pauseOrThrow, StoreFault } from '@playline/stores';
import { enforceFences, type FenceEnforcer } from '../fences.ts';
import type { ErasureReceipt, ErasureRecords } from '../records.ts';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { dropStaleBatches, type TargetBatches, type TargetBatchesOptions, withTargets } from './batches.ts';
import { KnownKeys } from './verify-receipt.ts';

/**
 * If more looks than this find something, it is a fault. Sweeps need three at most, because merges move rows; more
 * means that rows keep coming.
 */
const PASSES_MAX = 10;

export interface ScrubOptions extends Omit<TargetBatchesOptions, 'rows'> {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'sweep' | 'findSurvivors' | 'readBatches' | 'dropTargets'>;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readFinished'>;
  /** The store of links and consents. What is left there is removed, and its fences are set again. */
  readonly people: FenceEnforcer;
  /**
   * Told of every look that found something, before it is swept: an incident. Later looks (the first is 1) tell again of
   * rows that the store moved under a sweep.
   */
  readonly onSurvivors?: (survivors: readonly Survivors[], look: number) => void;
  /** Ends it between two steps, and the wait for a change of a table as `sweep` says. */
  readonly signal?: AbortSignal;
}

export interface Scrubbed {
  /** Fences whose rows were looked for. A fence that was raised again counts twice until the store has folded it. */
  readonly fences: number;
  /** Fences of erasures without a receipt: their rows are about to be swept, and are no survivors. */
  readonly unfinished: number;
  /** What first looks found. */
  readonly found: readonly Survivors[];
  /** What sweeps found; a row that the store moved under one is counted again. */
  readonly swept: readonly Survivors[];
}

/**
 * Looks for rows, links and consents that a fence should have kept out, and removes them until none is left. Fences are kept for ever, so
 * everybody who was ever erased is looked for, a hundred thousand in one pass over the keys of the tables. May run beside
 * erasers and beside itself; killed half-way it is simply run again.
 * @throws StoreFault, also when rows come faster than they are swept; the reason of `signal`
 */
export async function scrub(options: ScrubOptions): Promise<Scrubbed> {
  const { rows, records, signal } = options;
  await dropStaleBatches({ rows, wallClockMs: options.wallClockMs });
  return withTargets(options, async (batches) => {
    // Read before the fences: everybody in it was swept before any fence was read.
    const finished = await records.readFinished();
    let [fences, unfinished] = [0, 0];
    for await (const fence of records.readFences(signal === undefined ? {} : { signal })) {
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

/** Sets the fences of finished erasures again, and removes what is left of their people in the store of links. */
async function scrubPeople(
  { records, people, signal, onSurvivors }: ScrubOptions,
  finished: ReadonlySet<string>,
): Promise<readonly Survivors[]> {
  const ofFinished = async function* () {
    for await (const fence of records.readFences(signal === undefined ? {} : { signal }))
      if (finished.has(fence.erasureId.toString('hex'))) yield fence;
  };
  const survivors: Survivors[] = [];
  for (const [environmentId, { links, consents }] of await enforceFences(people, ofFinished())) {
    const left = { column: '', as: 'own', environmentId } as const;
    if (links > 0) survivors.push({ ...left, table: 'redis.i', rows: links });
    if (consents > 0) survivors.push({ ...left, table: 'redis.c', rows: consents });
  }
  if (survivors.length > 0) onSurvivors?.(survivors, 1);
  return survivors;
}

async function scrubBatch({ rows, signal, onSurvivors }: ScrubOptions, batches: TargetBatches, batch: Buffer) {
  const swept: Survivors[] = [];
  let found: readonly Survivors[] = [];
  for (let look = 1; ; look++) {
    signal?.throwIfAborted();
    const survivors = toSurvivors(await rows.findSurvivors(batch));
    if (look === 1) found = survivors;
    if (survivors.length === 0) return { found, swept };
    onSurvivors?.(survivors, look);
    if (look === PASSES_MAX)
      throw new StoreFault(`rows of erased people come as fast as they are swept: ${PASSES_MAX} looks found some`, {
        kind: 'passing',
        code: 'SURVIVORS',
      });
    const sweep = rows.sweep(batch, signal).catch((fault: unknown) => {
      // A change of the store continues although nobody waits for it any more.
      batches.keep(batch);
      throw fault;
    });
    for (const each of toSurvivors(await sweep)) swept.push(each);
  }
}

/** Rows that are left of erased people, by where they stand. No key: it is told to people. */
export interface Survivors extends Pick<FoundRows, 'table' | 'column' | 'as' | 'environmentId'> {
  readonly rows: number;
}

/** Adds up what was found of all people, in the order of the places. */
export function toSurvivors(found: readonly Survivors[]): Survivors[] {
  const sums = new Map<string, Survivors>();
  for (const { table, column, as, environmentId, rows } of found) {
    const name = `${table}.${column} ${as} ${environmentId}`;
    sums.set(name, { table, column, as, environmentId, rows: rows + (sums.get(name)?.rows ?? 0) });
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, sum]) => sum);
}

/** Replaced files stay for eight minutes. */
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
  /** Called with rows that are still in files after the removal. Then no receipt is marked. */
  readonly onFoundOnDisk?: (survivors: readonly Survivors[]) => void;
  /** Called at every look for files that were replaced and are still there. */
  readonly onReplaced?: (files: number) => void;
  /** Waits between two such looks, by default ten seconds; there are at most 180. */
  readonly pause?: (signal?: AbortSignal) => Promise<void>;
  /** Ends it between two steps, and the wait for a change of a table. */
  readonly signal?: AbortSignal;
}

export interface Removal {
  /** Fences whose rows were looked for in files. */
  readonly fences: number;
  /** Empty, or else no receipt was marked. */
  readonly foundOnDisk: readonly Survivors[];
  /** Receipts that say from now on that no row stands in a file. */
  readonly marked: number;
  /** Receipts that wait for the next removal: some of their identities are being erased again at this moment. */
  readonly deferred: number;
}

/**
 * Physical removal: writes every file with deleted rows anew, waits until the files from before are gone, looks into what
 * is left for everybody who was erased when it began, and marks their receipts. Takes as long as the store keeps replaced
 * files, minutes. Rows that a scrub would find keep it from marking, so scrub first. Killed, it is begun again.
 * @throws StoreFault, also when replaced files do not go, or fences are missing; the reason of `signal`
 */
export async function removeFromDisk(options: RemovalOptions): Promise<Removal> {
  const { rows, signal } = options;
  await dropStaleBatches({ rows, wallClockMs: options.wallClockMs });
  return withTargets(options, async (batches) => {
    // Everything is read before the removal starts: rows erased while it runs are only masked, and would look like
    // remains.
    const { fences, covered, deferred } = await putErased(options, batches);
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
 * Puts the targets: fences of finished erasures, and the keys that requests of unmarked receipts name.
 *
 * A receipt is covered when the keys looked for have its hash. Where a later erasure has taken over some of its fences, it
 * is covered too, as the later fence holds for all that is older, unless the later erasure is not finished.
 */
async function putErased({ records, signal }: RemovalOptions, batches: TargetBatches) {
  // Read before the fences: so every receipt belongs to an erasure whose fences are there.
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
  for await (const fence of records.readFences(signal === undefined ? {} : { signal })) {
    const id = fence.erasureId.toString('hex');
    known.get(id)?.add(fence.key);
    if (finished.has(id)) {
      fences++;
      await batches.add(fence);
    } else unfinishedIn.add(fence.environmentId);
  }
  if (fences === 0 && receipts.length > 0)
    throw new StoreFault('there are receipts and not one fence: nobody was looked for', {
      kind: 'final',
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

async function awaitReplaced({ rows, signal, onReplaced, pause = rest }: RemovalOptions, untilMs: number) {
  for (let poll = 1; ; poll++) {
    signal?.throwIfAborted();
    const files = await rows.countReplaced(untilMs);
    if (files === 0) return;
    onReplaced?.(files);
    if (poll === POLLS_MAX)
      throw new StoreFault(`${files} files that were replaced are still there`, { kind: 'passing', code: 'REPLACED' });
    await pause(signal);
  }
}

const rest = (signal?: AbortSignal) => pauseOrThrow(POLL_MS, signal);

/** @returns how many receipts were marked */
async function mark({ records, wallClockMs }: RemovalOptions, covered: ReadonlySet<string>): Promise<number> {
  const physicallyErasedAt = wallClockMs();
  // Read again, because the log of some may have been noted as expired meanwhile.
  const open = (await records.readOpenReceipts()).filter(isUnmarked);
  const receipts = open.filter(({ erasureId }) => covered.has(erasureId.toString('hex')));
  await records.putReceipts(receipts.map((receipt) => ({ ...receipt, physicallyErasedAt })));
  return receipts.length;
}
