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

/** Restores the data of an emptied store. Every graph `load…` throws EpochPresentFault when there is an epoch. */
export interface PeopleRebuild {
  /**
   * Creates an epoch if there is none, after which all fences count as set. Returns the current epoch.
   * @param run the store's run in which loading began (`fenceStatus`), when anything was loaded
   * @throws RestartedFault when that run has ended
   */
  mintEpoch(run?: string): Promise<string>;
  /** Stores identities under their roots; a later row replaces an earlier one. */
  loadOverrides(overrides: readonly Override[]): Promise<void>;
  loadUnlinkSides(sides: readonly UnlinkSide[]): Promise<void>;
  /** Stores which facts were decided, so that they are `done` when they are delivered again. */
  loadDecided(facts: readonly DecidedFact[]): Promise<void>;
  /** Of two rows for an identity, the row with the later fact applies. */
  loadSuspects(suspects: readonly LoggedSuspect[]): Promise<void>;
  /** Raises the last applied offset. @param note about the facts after the offset */
  loadApplied(source: LinkSourcePartition, offset: number, note?: GraphNote): Promise<void>;
  /** Like `apply` of the consent store, with or without an epoch. */
  loadConsents(changes: readonly LoggedConsent[]): Promise<ApplyOutcome[]>;
  /** All linked identities of all environments, possibly with duplicates. */
  identities(): AsyncIterable<LinkedIdentity>;
  /** SHA-256 (hex) over every identity, root, kind and link time of an environment, and every unlink side. */
  digest(environmentId: string): Promise<string>;
}

export type LinkedIdentity = Pick<Override, 'environmentId' | 'key' | 'root'>;

/** An override with the version of its decision. The greatest version of an identity applies. */
export interface VersionedOverride extends Override {
  readonly version: bigint;
}

type Rows<R> = AsyncIterable<R> | Iterable<R>;

/** Sources of a graph rebuild. Table rows are streamed. */
export interface GraphSources {
  readonly fences: readonly Cutoff[];
  /**
   * Rows of logged decisions that the tables may lack, in any order, with duplicates. Read first and kept in memory.
   */
  readonly later: Rows<VersionedOverride | UnlinkSide | LoggedSuspect | DecidedFact>;
  /** Rows of the overrides table, one per identity. */
  readonly stored: Rows<VersionedOverride>;
  readonly unlinks: Rows<UnlinkSide>;
  /** The latest suspect of each identity. */
  readonly suspects?: Rows<LoggedSuspect>;
  /** Decided facts after `applied`. */
  readonly decided: Rows<DecidedFact>;
  /** For each partition of the link topic: an offset up to which the rows contain every decision. */
  readonly applied: readonly (LinkSourcePartition & { readonly offset: number })[];
  /** Note for every partition: the end offset up to which the decision log was read. */
  readonly note?: GraphNote;
}

export interface RebuiltGraph {
  /** Identities from the table. */
  readonly fromTable: number;
  /** Identities whose person is newer in the log than in the table. */
  readonly fromLog: number;
  /** Erased identities that were left out. */
  readonly erased: number;
  /** Unlink sides, duplicates included. */
  readonly unlinkSides: number;
}

/** About 100 KB per call. */
const LOAD_ROWS_MAX = 1_000;

/** Overrides of a decision: one per moved identity, and one per identity that stays after an unlink. */
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

/** The sides of an unlink; empty for other decisions. */
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

/** The suspect of a decision that holds an identity or records a ruling; empty for other decisions. */
export function toSuspects(
  decision: Pick<
    IdentityDecisionRecord,
    'environmentId' | 'generation' | 'offset' | 'receivedAt' | 'aKey' | 'aKind' | 'bKey' | 'bKind' | 'reason'
  >,
): LoggedSuspect[] {
  const { environmentId, generation, offset, receivedAt, aKey, aKind, bKey, bKind, reason } = decision;
  const state = Object.hasOwn(STATES, reason) ? STATES[reason] : undefined;
  if (state === undefined) return [];
  // The side that gathers anonymous ids, as in the graph's script.
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
 * Loads a graph without an epoch. Each identity gets its latest root, in any order of rows, so a failed rebuild may be
 * repeated. The caller creates the epoch when everything is loaded.
 * @throws EpochPresentFault, or a fault of the graph or of a source
 */
export async function rebuildGraph(
  { guards, rebuild }: Pick<People, 'guards' | 'rebuild'>,
  sources: GraphSources,
): Promise<RebuiltGraph> {
  // Fails here when there is an epoch, even without rows.
  await rebuild.loadOverrides([]);
  await guards.fence(sources.fences);
  const isApplied = createIsApplied(sources.applied);
  const { later, sides, suspects, decided } = await collectLater(sources.later, isApplied);
  const isErased = createIsErased(sources.fences);
  const rebuilt = { fromTable: 0, fromLog: 0, erased: 0, unlinkSides: 0 };
  const toOverride = (row: VersionedOverride, source: 'fromTable' | 'fromLog') => {
    const erased = isErased(row, row.linkedAt);
    rebuilt[erased ? 'erased' : source]++;
    return erased ? [] : [row];
  };
  const overrides = async function* () {
    for await (const row of sources.stored) {
      const name = toName(row);
      const newer = later.get(name);
      later.delete(name);
      if (newer !== undefined && newer.version > row.version) yield* toOverride(newer, 'fromLog');
      else yield* toOverride(row, 'fromTable');
    }
    for (const row of later.values()) yield* toOverride(row, 'fromLog');
  };
  const loadAll = async <R>(rows: AsyncIterable<R>, load: (rows: readonly R[]) => Promise<void>) => {
    for await (const batch of inBatches(rows, LOAD_ROWS_MAX)) await load(batch);
  };
  await loadAll(overrides(), rebuild.loadOverrides);
  const keptSides = filterRows([sources.unlinks, sides], (side) => !isErased(side, side.unlinkedAt));
  await loadAll(keptSides, (rows) => {
    rebuilt.unlinkSides += rows.length;
    return rebuild.loadUnlinkSides(rows);
  });
  const isKept = (row: LoggedSuspect) => row.state !== 'held' || !isErased(row, row.since);
  await loadAll(filterRows([sources.suspects ?? [], suspects], isKept), rebuild.loadSuspects);
  await loadAll(
    filterRows([sources.decided, decided], (fact) => !isApplied(fact)),
    rebuild.loadDecided,
  );
  for (const { offset, ...source } of sources.applied) await rebuild.loadApplied(source, offset, sources.note);
  return rebuilt;
}

async function* filterRows<R>(sources: readonly Rows<R>[], isWanted: (row: R) => boolean): AsyncGenerator<R> {
  for (const rows of sources) for await (const row of rows) if (isWanted(row)) yield row;
}

/** Sixteen one-byte characters take half the memory of a hexadecimal string. */
function toName({ environmentId, key }: Pick<Override, 'environmentId' | 'key'>): string {
  return `${environmentId}\0${key.toString('latin1')}`;
}

/** The log may contain duplicate decisions in any order. The greatest version counts. */
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

/** Creates the check whether a decided fact will not be delivered again. */
function createIsApplied(applied: GraphSources['applied']): (fact: DecidedFact) => boolean {
  const offsets = new Map(applied.map(({ generation, partition, offset }) => [`${generation}/${partition}`, offset]));
  return ({ generation, partition, offset }) => offset <= (offsets.get(`${generation}/${partition}`) ?? -1);
}

/** Creates the check whether a row of an erased person is not later than the cut-off. */
function createIsErased(fences: readonly Cutoff[]) {
  const cutoffs = new Map<string, number>();
  for (const fence of fences) {
    const name = toName(fence);
    cutoffs.set(name, Math.max(fence.cutoffMs, cutoffs.get(name) ?? fence.cutoffMs));
  }
  return (row: Pick<Override, 'environmentId' | 'key'>, sinceMs: number): boolean =>
    sinceMs <= (cutoffs.get(toName(row)) ?? Number.NEGATIVE_INFINITY);
}
