import { pauseOrThrow, StoreFault } from '@playline/stores';
import type { ErasureReceipt, ErasureRecords } from '../records.ts';
import type { ErasureRows } from '../rows.ts';
import { dropStaleBatches, type TargetBatches, type TargetBatchesOptions, withTargets } from './batches.ts';
import { type Survivors, toSurvivors } from './scrub.ts';
import { KnownKeys } from './verify-receipt.ts';

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
