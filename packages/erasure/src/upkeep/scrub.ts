import { StoreFault } from '@playline/stores';
import { enforceFences, type FenceEnforcer } from '../fences.ts';
import type { ErasureRecords } from '../records.ts';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { dropStaleBatches, type TargetBatches, type TargetBatchesOptions, withTargets } from './batches.ts';

/**
 * If more looks than this find something, it is a fault. Sweeps need three at most, because merges move rows; more
 * means that rows keep coming.
 */
const LOOKS_MAX = 10;

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
    if (look === LOOKS_MAX)
      throw new StoreFault(`rows of erased people come as fast as they are swept: ${LOOKS_MAX} looks found some`, {
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
