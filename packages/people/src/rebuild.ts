import type { IdentityDecisionRecord } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { ApplyOutcome, LoggedConsent } from './consents.ts';
import type {
  DecidedFact,
  GraphNote,
  LinkSourcePartition,
  LoggedSuspect,
  Override,
  Suspect,
  UnlinkSide,
} from './graph.ts';
import type { Cutoff } from './guards.ts';
import { RULING_REASONS } from './identities/decisions.ts';
import type { People } from './people.ts';

/** Restores an emptied store. The graph's `load…` methods throw EpochPresentFault if the store has an epoch. */
export interface PeopleRebuild {
  /**
   * Returns which environments are in a part of the store that has no epoch. Only their data is loaded.
   * @throws EpochPresentFault if no part is missing
   */
  missing(): Promise<(environmentId: string) => boolean>;
  /**
   * Creates an epoch if there is none and marks the fences complete. Returns the current epoch.
   * @param run run from `fenceStatus` in which loading started; omit if nothing was loaded
   * @throws RestartedFault if the run has ended
   */
  mintEpoch(run?: string): Promise<string>;
  /** Stores each identity's root. Later rows replace earlier rows. */
  loadOverrides(overrides: readonly Override[]): Promise<void>;
  loadUnlinkSides(sides: readonly UnlinkSide[]): Promise<void>;
  /** Marks facts as decided, so that redelivered facts are `done`. */
  loadDecided(facts: readonly DecidedFact[]): Promise<void>;
  /** If an identity has several rows, the row from the latest fact applies. */
  loadSuspects(suspects: readonly LoggedSuspect[]): Promise<void>;
  /** Raises the last applied offset and stores the note for later facts. */
  loadApplied(source: LinkSourcePartition, offset: number, note?: GraphNote): Promise<void>;
  /** Applies changes like `ConsentStore.apply`, but does not require an epoch. */
  loadConsents(changes: readonly LoggedConsent[]): Promise<ApplyOutcome[]>;
  /** Iterates over all linked identities in all environments, possibly with duplicates. */
  identities(): AsyncIterable<LinkedIdentity>;
  /** SHA-256 (hex) of an environment's overrides and unlink sides. */
  digest(environmentId: string): Promise<string>;
}

export type LinkedIdentity = Pick<Override, 'environmentId' | 'key' | 'root'>;

/** An override with its decision's version. The highest version applies. */
export interface VersionedOverride extends Override {
  readonly version: bigint;
}

type Rows<R> = AsyncIterable<R> | Iterable<R>;

/** Sources of a graph rebuild. Table rows are streamed. */
export interface GraphSources {
  readonly fences: readonly Cutoff[];
  /** Rows from logged decisions that the tables may lack, in any order and with duplicates. Read first and buffered. */
  readonly later: Rows<VersionedOverride | UnlinkSide | LoggedSuspect | DecidedFact>;
  /** Rows from the overrides table, one per identity. */
  readonly stored: Rows<VersionedOverride>;
  readonly unlinks: Rows<UnlinkSide>;
  /** The latest suspect of each identity. */
  readonly suspects?: Rows<LoggedSuspect>;
  /** Decided facts after `applied`. */
  readonly decided: Rows<DecidedFact>;
  /** Per link-topic partition, an offset up to which the rows contain all decisions. */
  readonly applied: readonly (LinkSourcePartition & { readonly offset: number })[];
  /** Note to store for every partition; contains the end offsets of the decision log. */
  readonly note?: GraphNote;
}

export interface RebuiltGraph {
  /** Number of identities from the table. */
  readonly fromTable: number;
  /** Number of identities whose person is newer in the log than in the table. */
  readonly fromLog: number;
  /** Number of erased identities that were skipped. */
  readonly erased: number;
  /** Number of unlink sides, including duplicates. */
  readonly unlinkSides: number;
}

/** About 100 KB per call. */
const LOAD_ROWS_MAX = 1_000;

/** Converts a decision to overrides: one per moved identity and one per identity that stays after an unlink. */
export function toOverrides(
  decision: Pick<IdentityDecisionRecord, 'environmentId' | 'outcome' | 'root' | 'moved' | 'unlink'>,
  version: bigint,
): VersionedOverride[] {
  const { environmentId, outcome, root, moved, unlink } = decision;
  if (outcome !== 'linked') return [];
  const toRows = (identities: IdentityDecisionRecord['moved'], to: Buffer) =>
    identities.map(({ key, kind, linkedAt }) => ({ environmentId, key, kind, root: to, linkedAt, version }));
  return unlink === null ? toRows(moved, root) : [...toRows(moved, root), ...toRows(unlink.stayed, unlink.stayedRoot)];
}

/** Converts an unlink decision to its sides. Empty for other decisions. */
export function toUnlinkSides(decision: IdentityDecisionRecord): UnlinkSide[] {
  const { environmentId, generation, offset, receivedAt, aKey, outcome, moved, unlink } = decision;
  if (unlink === null) return [];
  const toSides = (identities: readonly { key: Buffer }[], side: UnlinkSide['side']) =>
    identities.map(({ key }) => ({ environmentId, key, side, generation, offset, unlinkedAt: receivedAt }));
  if (outcome !== 'linked') return toSides([{ key: aKey }], 'none');
  return [...toSides(moved, 'split'), ...toSides(unlink.stayed, 'stayed')];
}

const STATES: Readonly<Record<string, Suspect['state']>> = {
  suspect: 'held',
  [RULING_REASONS.allow]: 'allowed',
  [RULING_REASONS.block]: 'blocked',
};
export const SUSPECT_REASONS = Object.keys(STATES);

/** Converts a decision that holds an identity or records a ruling to its suspect. Empty for other decisions. */
export function toSuspects(
  decision: Pick<
    IdentityDecisionRecord,
    'environmentId' | 'generation' | 'offset' | 'receivedAt' | 'aKey' | 'aKind' | 'bKey' | 'bKind' | 'reason'
  >,
): LoggedSuspect[] {
  const { environmentId, generation, offset, receivedAt, aKey, aKind, bKey, bKind, reason } = decision;
  const state = Object.hasOwn(STATES, reason) ? STATES[reason] : undefined;
  if (state === undefined) return [];
  // Must select the same side as the graph's script.
  const key = bKind === 'anonymous' && aKind !== 'anonymous' ? aKey : bKey;
  return [{ environmentId, key, state, since: receivedAt, generation, offset }];
}

export function toDecidedFact(decision: DecidedFact): DecidedFact {
  const { environmentId, generation, partition, offset } = decision;
  return { environmentId, generation, partition, offset };
}

export function toUnlinkSideLine({ key, side, generation, offset, unlinkedAt }: UnlinkSide): string {
  return `${key.toString('hex')} ${side} ${generation} ${offset} ${unlinkedAt}\n`;
}

/**
 * Loads all graph data into a store without an epoch. Rows may be in any order, and a failed rebuild may be
 * retried. The caller must then create the epoch.
 * @throws EpochPresentFault, or a store or source fault
 */
export async function rebuildGraph(
  { guards, rebuild }: Pick<People, 'guards' | 'rebuild'>,
  sources: GraphSources,
): Promise<RebuiltGraph> {
  const isMissing = await rebuild.missing();
  await guards.fence(sources.fences);
  const isApplied = createIsApplied(sources.applied);
  const { later, sides, suspects, decided } = await collectLater(sources.later, isApplied);
  const isErased = createIsErased(sources.fences);
  const isWanted = ({ environmentId }: Pick<Override, 'environmentId'>) => isMissing(environmentId);
  const rebuilt = { fromTable: 0, fromLog: 0, erased: 0, unlinkSides: 0 };
  const toOverride = (row: VersionedOverride, source: 'fromTable' | 'fromLog') => {
    const erased = isErased(row, row.linkedAt);
    rebuilt[erased ? 'erased' : source]++;
    return erased ? [] : [row];
  };
  const overrides = async function* () {
    for await (const row of filterRows([sources.stored], isWanted)) {
      const name = toName(row);
      const newer = later.get(name);
      later.delete(name);
      if (newer !== undefined && newer.version > row.version) yield* toOverride(newer, 'fromLog');
      else yield* toOverride(row, 'fromTable');
    }
    for (const row of later.values()) if (isWanted(row)) yield* toOverride(row, 'fromLog');
  };
  const loadAll = async <R>(rows: AsyncIterable<R>, load: (rows: readonly R[]) => Promise<void>) => {
    for await (const batch of inBatches(rows, LOAD_ROWS_MAX)) await load(batch);
  };
  await loadAll(overrides(), rebuild.loadOverrides);
  const keptSides = filterRows([sources.unlinks, sides], (side) => isWanted(side) && !isErased(side, side.unlinkedAt));
  await loadAll(keptSides, (rows) => {
    rebuilt.unlinkSides += rows.length;
    return rebuild.loadUnlinkSides(rows);
  });
  const isKept = (row: LoggedSuspect) => isWanted(row) && (row.state !== 'held' || !isErased(row, row.since));
  await loadAll(filterRows([sources.suspects ?? [], suspects], isKept), rebuild.loadSuspects);
  await loadAll(
    filterRows([sources.decided, decided], (fact) => isWanted(fact) && !isApplied(fact)),
    rebuild.loadDecided,
  );
  for (const { offset, ...source } of sources.applied) await rebuild.loadApplied(source, offset, sources.note);
  return rebuilt;
}

async function* filterRows<R>(sources: readonly Rows<R>[], isWanted: (row: R) => boolean): AsyncGenerator<R> {
  for (const rows of sources) for await (const row of rows) if (isWanted(row)) yield row;
}

/** A latin1 string takes half the memory of a hexadecimal string. */
function toName({ environmentId, key }: Pick<Override, 'environmentId' | 'key'>): string {
  return `${environmentId}\0${key.toString('latin1')}`;
}

/** Decisions in the log may be duplicated and unordered. The highest version applies. */
async function collectLater(rows: GraphSources['later'], isApplied: (fact: DecidedFact) => boolean) {
  const later = new Map<string, VersionedOverride>();
  const sides: UnlinkSide[] = [];
  const suspects: LoggedSuspect[] = [];
  const decided: DecidedFact[] = [];
  for await (const row of rows) {
    if ('side' in row) sides.push(row);
    else if ('state' in row) suspects.push(row);
    else if (!('key' in row)) {
      if (!isApplied(row)) decided.push(row);
    } else {
      const name = toName(row);
      const known = later.get(name);
      if (known === undefined || known.version < row.version) later.set(name, row);
    }
  }
  return { later, sides, suspects, decided };
}

/** Creates a predicate for facts that will not be redelivered. */
function createIsApplied(applied: GraphSources['applied']): (fact: DecidedFact) => boolean {
  const offsets = new Map(applied.map(({ generation, partition, offset }) => [`${generation}/${partition}`, offset]));
  return ({ generation, partition, offset }) => offset <= (offsets.get(`${generation}/${partition}`) ?? -1);
}

/** Creates a predicate for erased people's rows up to the cut-off. */
function createIsErased(fences: readonly Cutoff[]) {
  const cutoffs = new Map<string, number>();
  for (const fence of fences) {
    const name = toName(fence);
    cutoffs.set(name, Math.max(fence.cutoffMs, cutoffs.get(name) ?? fence.cutoffMs));
  }
  return (row: Pick<Override, 'environmentId' | 'key'>, sinceMs: number): boolean =>
    sinceMs <= (cutoffs.get(toName(row)) ?? Number.NEGATIVE_INFINITY);
}
