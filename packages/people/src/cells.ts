/** Divides people data into cells, each of which is a complete store for its environments. */
import { settleAll, settleSome, toLowest, toPartition } from '@playline/stores';
import type { ConsentStore } from './consents.ts';
import type { Applied, IdentityGraph, LinkSourcePartition } from './graph.ts';
import type { ErasureGuards, FenceStatus } from './guards.ts';
import { EpochPresentFault, type People } from './people.ts';
import type { PeopleRebuild } from './rebuild.ts';

/** The data of one cell, or of a store that is not divided. */
export type PeopleStore = Pick<People, 'graph' | 'consents' | 'guards' | 'rebuild' | 'readEpoch'>;

/**
 * Number of partitions of the link topic, which determines the cells of each partition. If it is unknown, each
 * partition is assumed to have facts for every cell.
 */
export type LinkPartitions = () => Promise<number>;

/** The cell of an environment: Kafka's partition of its link facts, if there are as many partitions as cells. */
export function cellOf(environmentId: string, cells: number): number {
  return toPartition(Buffer.from(environmentId), cells);
}

/** The cells of the environments whose facts are in a partition: one if there are as many partitions as cells. */
export function cellsOf(partition: number, { partitions, cells }: { partitions: number; cells: number }): number[] {
  const step = greatestDivisor(partitions, cells);
  return Array.from({ length: cells / step }, (_, at) => (partition % step) + at * step);
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

/** Joins the stores of all cells. A cell that does not respond affects only its environments. */
export function joinCells(stores: readonly PeopleStore[], linkPartitions: LinkPartitions | null): PeopleStore {
  const router = createRouter(stores);
  return {
    graph: createGraph(router, createSources(stores, linkPartitions)),
    consents: createConsents(router),
    guards: createGuards(router),
    rebuild: createRebuild(router),
    readEpoch: (environmentId) =>
      environmentId === undefined ? readEpochs(stores) : router.of(environmentId).readEpoch(environmentId),
  };
}

/** Null if any cell has no epoch. */
async function readEpochs(stores: readonly PeopleStore[]): Promise<string | null> {
  const epochs = await Promise.all(stores.map((store) => store.readEpoch()));
  return epochs.includes(null) ? null : [...new Set(epochs)].join();
}

type Router = ReturnType<typeof createRouter>;

function createRouter(stores: readonly PeopleStore[]) {
  const indexOf = (environmentId: string) => cellOf(environmentId, stores.length);
  const of = (environmentId: string) => stores[indexOf(environmentId)]!;
  return {
    stores,
    indexOf,
    of,
    /** Calls each cell that has rows, in parallel. */
    async each<R extends { readonly environmentId: string }, T>(
      rows: readonly R[],
      call: (store: PeopleStore, rows: R[]) => Promise<T>,
    ): Promise<T[]> {
      const groups = Map.groupBy(rows, (row) => indexOf(row.environmentId));
      return Promise.all([...groups].map(([cell, group]) => call(stores[cell]!, group)));
    },
  };
}

type Sources = ReturnType<typeof createSources>;

/** Reads the progress of a partition, which each of its cells stores. */
function createSources(stores: readonly PeopleStore[], linkPartitions: LinkPartitions | null) {
  let known: number | null = null;
  const indexesOf = async ({ partition }: LinkSourcePartition) => {
    known ??= (await linkPartitions?.()) || 1;
    return cellsOf(partition, { partitions: known, cells: stores.length });
  };
  return {
    indexesOf,
    /** The last applied offset of each of the partition's cells. @throws MissingEpochFault */
    async applied(source: LinkSourcePartition) {
      const indexes = await indexesOf(source);
      const offsets = await Promise.all(indexes.map((index) => stores[index]!.graph.lastApplied(source)));
      return indexes.map((index, at) => ({ graph: stores[index]!.graph, applied: offsets[at]! }));
    },
  };
}

function createGraph({ stores, of, indexOf }: Router, sources: Sources): IdentityGraph {
  return {
    async apply(block, onPart) {
      const indexes = await sources.indexesOf(block);
      // A cell without a fact notes the end of the block. Otherwise its last offset would look like a loss.
      const positions = new Map<number, number[]>(indexes.map((index) => [index, []]));
      for (const [at, { environmentId }] of block.facts.entries()) {
        const index = indexOf(environmentId);
        const found = positions.get(index);
        if (found === undefined) positions.set(index, [at]);
        else found.push(at);
      }
      if (positions.size === 1) return stores[indexes[0]!]!.graph.apply(block, onPart);
      const ordered = createOrdered(block.facts.length, onPart);
      const calls = [...positions].map(([index, at]) => {
        const facts = at.map((position) => block.facts[position]!);
        return stores[index]!.graph.apply({ ...block, facts }, ordered.receive(at));
      });
      await settleAll(calls);
      return ordered.results;
    },
    async lastApplied(source) {
      const cells = await sources.applied(source);
      return cells.reduce((lowest, { applied }) => Math.min(lowest, applied), Number.POSITIVE_INFINITY);
    },
    async note(source, note, through = Number.POSITIVE_INFINITY) {
      const [index, ...others] = await sources.indexesOf(source);
      if (others.length === 0) return stores[index!]!.graph.note(source, note);
      const cells = await sources.applied(source);
      // A cell that is ahead of the others keeps the note of its last batch.
      await settleAll(cells.filter(({ applied }) => applied < through).map(({ graph }) => graph.note(source, note)));
    },
    async readNote(source) {
      const cells = (await sources.applied(source)).sort((a, b) => a.applied - b.applied);
      const [first, last] = await Promise.all([cells[0]!, cells.at(-1)!].map(({ graph }) => graph.readNote(source)));
      // The log must contain the last applied fact, and decisions are needed after the first fact that is missing.
      return first || last ? { mark: last?.mark ?? null, decisions: first?.decisions ?? null } : null;
    },
    async trim(source, through, environmentIds) {
      const groups = Map.groupBy(environmentIds, indexOf);
      await settleAll([...groups].map(([index, ids]) => stores[index]!.graph.trim(source, through, ids)));
    },
    rootOf: (environmentId, key) => of(environmentId).graph.rootOf(environmentId, key),
    rootsOf: (environmentId, keys) => of(environmentId).graph.rootsOf(environmentId, keys),
    membersOf: (environmentId, key) => of(environmentId).graph.membersOf(environmentId, key),
    suspects: (environmentId) => of(environmentId).graph.suspects(environmentId),
    forget: (erasure, keys) => of(erasure.environmentId).graph.forget(erasure, keys),
  };
}

/** Collects results from several cells in the order of the facts. */
function createOrdered(count: number, onPart?: (applied: readonly Applied[]) => void) {
  const results = new Array<Applied>(count);
  let reported = 0;
  const report = () => {
    const start = reported;
    while (reported < count && results[reported] !== undefined) reported++;
    if (reported > start) onPart?.(results.slice(start, reported));
  };
  return {
    results,
    /** @param positions positions of a cell's facts */
    receive(positions: readonly number[]) {
      let next = 0;
      return (part: readonly Applied[]) => {
        for (const applied of part) results[positions[next++]!] = applied;
        report();
      };
    },
  };
}

/** Joins the runs of all cells; '' for a cell that needs no work. */
const toRun = (runs: readonly string[]): string => runs.join();
const fromRun = (run: string): string[] => run.split(',');
/** Precedes the run of a cell whose fences need no work. */
const NOT_RESTORABLE = '-';

/** Calls every cell that has a run. Returns false if one of these runs has ended. */
async function inRuns(run: string, call: (run: string, index: number) => Promise<boolean>): Promise<boolean> {
  const calls = fromRun(run).map(async (each, index) =>
    each === '' || each.startsWith(NOT_RESTORABLE) ? true : call(each, index),
  );
  return (await settleAll(calls)).every((isPresent) => isPresent);
}

function createConsents({ stores, of, indexOf }: Router): ConsentStore {
  return {
    apply: (change) => of(change.environmentId).consents.apply(change),
    read: (environmentId, key) => of(environmentId).consents.read(environmentId, key),
    readStored: (environmentId, keys) => of(environmentId).consents.readStored(environmentId, keys),
    forget: (environmentId, consents) => of(environmentId).consents.forget(environmentId, consents),
    async syncState() {
      const states = await settleSome(stores.map(({ consents }) => consents.syncState()));
      const lagging = states.map((state) => (state === null || state.isCurrent ? null : state));
      return {
        run: toRun(lagging.map((state) => state?.run ?? '')),
        isCurrent: lagging.every((state) => state === null),
        lags: (environmentId) => lagging[indexOf(environmentId)] !== null,
        applied: toLowest(lagging.flatMap((state) => state?.applied ?? [])),
      };
    },
    markCurrent: (run, ends) => inRuns(run, (each, index) => stores[index]!.consents.markCurrent(each, ends)),
    async noteApplied(ends) {
      const note = async ({ consents }: PeopleStore) => {
        const { run, isCurrent } = await consents.syncState();
        if (isCurrent) await consents.markCurrent(run, ends);
      };
      await settleSome(stores.map(note));
    },
  };
}

function createGuards({ stores, of, indexOf, each }: Router): ErasureGuards {
  return {
    putHold: (hold) => of(hold.environmentId).guards.putHold(hold),
    confirmHold: (name) => of(name.environmentId).guards.confirmHold(name),
    extendHold: (hold) => of(hold.environmentId).guards.extendHold(hold),
    listHolds: (environmentId) => of(environmentId).guards.listHolds(environmentId),
    releaseHold: (name) => of(name.environmentId).guards.releaseHold(name),
    async dropLapsedHolds(nowMs) {
      const dropped = await settleAll(stores.map(({ guards }) => guards.dropLapsedHolds(nowMs)));
      return dropped.reduce((sum, count) => sum + count, 0);
    },
    heldFrom: (environmentId, keys) => of(environmentId).guards.heldFrom(environmentId, keys),
    fence: async (cutoffs) => void (await each(cutoffs, ({ guards }, group) => guards.fence(group))),
    async enforce(cutoffs) {
      const removed = await each(cutoffs, ({ guards }, group) => guards.enforce(group));
      const sum = (count: 'links' | 'consents') => removed.reduce((total, counts) => total + counts[count], 0);
      return { links: sum('links'), consents: sum('consents') };
    },
    async fenceStatus() {
      const statuses = await settleSome(stores.map(({ guards }) => guards.fenceStatus()));
      return joinStatuses(statuses, indexOf);
    },
    completeFences: (run) => inRuns(run, (one, index) => stores[index]!.guards.completeFences(one)),
  };
}

function joinStatuses(statuses: readonly (FenceStatus | null)[], indexOf: (id: string) => number): FenceStatus {
  const restorable = statuses.map((status) => status?.isRestorable ?? false);
  return {
    run: toRun(
      statuses.map((status) => (status === null ? '' : `${status.isRestorable ? '' : NOT_RESTORABLE}${status.run}`)),
    ),
    isComplete: statuses.every((status) => status?.isComplete ?? false),
    isRestorable: restorable.includes(true),
    lacks: (environmentId) => restorable[indexOf(environmentId)]!,
  };
}

function createRebuild({ stores, of, indexOf, each }: Router): PeopleRebuild {
  const findEmpty = async () => {
    const epochs = await Promise.all(stores.map((store) => store.readEpoch()));
    const empty = epochs.flatMap((epoch, index) => (epoch === null ? [index] : []));
    if (empty.length === 0) throw new EpochPresentFault();
    return empty;
  };
  return {
    async missing() {
      const empty = new Set(await findEmpty());
      return (environmentId) => empty.has(indexOf(environmentId));
    },
    async mintEpoch(run) {
      // A cell that did not respond when loading started has not been loaded in its present run.
      const runs = run === undefined ? [] : fromRun(run).map((each) => each.replace(NOT_RESTORABLE, '') || 'unknown');
      const runOf = (index: number) => (run === undefined ? undefined : (runs[index] ?? 'unknown'));
      const epochs = await settleAll(stores.map(({ rebuild }, index) => rebuild.mintEpoch(runOf(index))));
      return [...new Set(epochs)].join();
    },
    loadOverrides: async (rows) => void (await each(rows, ({ rebuild }, group) => rebuild.loadOverrides(group))),
    loadUnlinkSides: async (rows) => void (await each(rows, ({ rebuild }, group) => rebuild.loadUnlinkSides(group))),
    loadDecided: async (rows) => void (await each(rows, ({ rebuild }, group) => rebuild.loadDecided(group))),
    loadSuspects: async (rows) => void (await each(rows, ({ rebuild }, group) => rebuild.loadSuspects(group))),
    async loadApplied(source, offset, note) {
      const empty = await findEmpty();
      await settleAll(empty.map((index) => stores[index]!.rebuild.loadApplied(source, offset, note)));
    },
    loadConsents: async (changes) => {
      const positions = Map.groupBy(changes.keys(), (at) => indexOf(changes[at]!.environmentId));
      const calls = [...positions].map(async ([index, at]) => {
        const outcomes = await stores[index]!.rebuild.loadConsents(at.map((position) => changes[position]!));
        return outcomes.map((outcome, position) => [at[position]!, outcome] as const);
      });
      const outcomes = (await settleAll(calls)).flat().sort(([a], [b]) => a - b);
      return outcomes.map(([, outcome]) => outcome);
    },
    // Every cell lists the identities of all cells.
    identities: () => stores[0]!.rebuild.identities(),
    digest: (environmentId) => of(environmentId).rebuild.digest(environmentId),
  };
}
