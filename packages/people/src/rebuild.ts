import type { IdentityDecisionRecord } from '@playline/contracts';
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

/** Restores everything into an emptied store. */
export interface PeopleRebuild {
  /**
   * Mints an epoch if there is none, and returns the one that counts. The caller must know whether that is allowed: from
   * then on all fences count as set.
   * @param run the run of the store in which loading began (`fenceStatus`), when anything was loaded
   * @throws RestartedFault when that run is over
   */
  mintEpoch(run?: string): Promise<string>;
  /**
   * Puts identities under their roots; a later row replaces an earlier one.
   * @throws EpochPresentFault
   */
  loadOverrides(overrides: readonly Override[]): Promise<void>;
  /**
   * Restores who was on which side of an unlink; loading the same row twice changes nothing.
   * @throws EpochPresentFault
   */
  loadUnlinkSides(sides: readonly UnlinkSide[]): Promise<void>;
  /**
   * Notes which facts were decided: if they are delivered again, nothing happens.
   * @throws EpochPresentFault
   */
  loadDecided(places: readonly DecidedFact[]): Promise<void>;
  /**
   * Restores suspects. Of two rows of an identity the one of the later fact counts.
   * @throws EpochPresentFault
   */
  loadSuspects(suspects: readonly LoggedSuspect[]): Promise<void>;
  /**
   * Raises the offset that counts as applied.
   * @param note about the facts after it
   * @throws EpochPresentFault
   */
  loadApplied(source: LinkSourcePartition, offset: number, note?: GraphNote): Promise<void>;
  /** Like `apply` of the consents for each change, with or without an epoch. */
  loadConsents(changes: readonly LoggedConsent[]): Promise<ApplyOutcome[]>;
  /** Every linked identity of all environments, for a comparison with the tables; may name one twice. */
  identities(): AsyncIterable<LinkedIdentity>;
  /** SHA-256 (hex) over every identity, root, kind and link time of an environment, and every side of its unlinks. */
  digest(environmentId: string): Promise<string>;
}

/** An identity and its person. */
export type LinkedIdentity = Pick<Override, 'environmentId' | 'key' | 'root'>;

/** The parts of a store that a graph is loaded into. */
type Target = Pick<People, 'guards' | 'rebuild'>;

/** An override with the place of its decision. Of two rows of an identity the greater version counts. */
export interface VersionedOverride extends Override {
  readonly version: bigint;
}

type Rows<R> = AsyncIterable<R> | Iterable<R>;

/** What a graph is rebuilt from. */
export interface GraphSources {
  /** Fences of erasures. */
  readonly fences: readonly Cutoff[];
  /** Rows of decisions that the table may lack, in any order and with copies. Read first and kept in memory. */
  readonly later: Rows<VersionedOverride | UnlinkSide | LoggedSuspect | DecidedFact>;
  /** Rows of the table, one per identity. Streamed. */
  readonly stored: Rows<VersionedOverride>;
  /** Sides of unlinks that the table has. Streamed. */
  readonly unlinks: Rows<UnlinkSide>;
  /** Suspects that the table has, the latest of each identity. Streamed. */
  readonly suspects?: Rows<LoggedSuspect>;
  /** Places of facts after `applied` with a decision in the table. Streamed. */
  readonly decided: Rows<DecidedFact>;
  /** For each partition of the link topic an offset up to which every decision is among the rows. */
  readonly applied: readonly (LinkSourcePartition & { readonly offset: number })[];
  /** Note for every partition: where the log of decisions ends that these sources were read from. */
  readonly note?: GraphNote;
}

/** Identities that a rebuild put under their roots. */
export interface RebuiltGraph {
  /** Identities from the table. */
  readonly fromTable: number;
  /** Those with a later person in the log than in the table, or without one in the table. */
  readonly fromLog: number;
  /** Erased identities that a source still had; they were left out. */
  readonly erased: number;
  /** Restored sides of unlinks, copies included. */
  readonly unlinkSides: number;
}

/** Rows loaded in one call: about 100 KB, well within the time that a call may take. */
const LOAD_ROWS_MAX = 1_000;

/** Overrides of a decision: one per moved identity, and for an unlink one per identity that stays. */
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

/** The sides of an unlink; nothing of any other decision. */
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

/** The suspect of a decision that holds an identity, or records a ruling; nothing of any other decision. */
export function toSuspects(
  decision: Pick<
    IdentityDecisionRecord,
    'environmentId' | 'generation' | 'offset' | 'receivedAt' | 'aKey' | 'aKind' | 'bKey' | 'bKind' | 'reason'
  >,
): LoggedSuspect[] {
  const { environmentId, generation, offset, receivedAt, aKey, aKind, bKey, bKind, reason } = decision;
  const state = Object.hasOwn(STATES, reason) ? STATES[reason] : undefined;
  if (state === undefined) return [];
  // The side that gathers, as the graph's script tells.
  const key = bKind === 'anonymous' && aKind !== 'anonymous' ? aKey : bKey;
  return [{ environmentId, key, state, since: receivedAt, generation, offset }];
}

/** Place of the fact of a decision. */
export function toDecidedFact(decision: DecidedFact): DecidedFact {
  const { environmentId, generation, partition, offset } = decision;
  return { environmentId, generation, partition, offset };
}

/** A side as a line of a digest. */
export function toUnlinkSideLine({ key, side, generation, offset, unlinkedAt }: UnlinkSide): string {
  return `${key.toString('hex')} ${side} ${generation} ${offset} ${unlinkedAt}\n`;
}

/**
 * Loads a graph without an epoch; the caller mints one when everything else is there too. Each identity goes straight
 * to its latest root, so neither the order of the sources nor a former run that was cut short changes the result.
 * @throws EpochPresentFault, or a fault of the graph or of a source; then the whole may be run again
 */
export async function rebuildGraph(people: Target, sources: GraphSources): Promise<RebuiltGraph> {
  await people.guards.fence(sources.fences);
  const isApplied = createIsApplied(sources.applied);
  const { later, sides, suspects, places } = await collectLater(sources.later, isApplied);
  const isErased = createIsErased(sources.fences);
  const rebuilt = { fromTable: 0, fromLog: 0, erased: 0, unlinkSides: 0 };
  const loader = createLoader((rows: readonly Override[]) => people.rebuild.loadOverrides(rows));
  const put = async (row: VersionedOverride, source: 'fromTable' | 'fromLog') => {
    const erased = isErased(row, row.linkedAt);
    rebuilt[erased ? 'erased' : source]++;
    if (!erased) await loader.add(row);
  };
  for await (const row of sources.stored) {
    const name = toName(row);
    const newer = later.get(name);
    later.delete(name);
    if (newer !== undefined && newer.version > row.version) await put(newer, 'fromLog');
    else await put(row, 'fromTable');
  }
  for (const row of later.values()) await put(row, 'fromLog');
  await loader.flush();
  const sideLoader = createLoader((rows: readonly UnlinkSide[]) => people.rebuild.loadUnlinkSides(rows));
  for (const rows of [sources.unlinks, sides])
    for await (const side of rows) {
      if (isErased(side, side.unlinkedAt)) continue;
      rebuilt.unlinkSides++;
      await sideLoader.add(side);
    }
  await sideLoader.flush();
  const suspectLoader = createLoader((rows: readonly LoggedSuspect[]) => people.rebuild.loadSuspects(rows));
  for (const rows of [sources.suspects ?? [], suspects])
    for await (const row of rows) if (row.state !== 'held' || !isErased(row, row.since)) await suspectLoader.add(row);
  await suspectLoader.flush();
  const placeLoader = createLoader((rows: readonly DecidedFact[]) => people.rebuild.loadDecided(rows));
  for (const rows of [sources.decided, places])
    for await (const place of rows) if (!isApplied(place)) await placeLoader.add(place);
  await placeLoader.flush();
  for (const { offset, ...source } of sources.applied) await people.rebuild.loadApplied(source, offset, sources.note);
  return rebuilt;
}

/** Key of a map. The sixteen bytes as one-byte characters take half the memory of hexadecimal. */
function toName({ environmentId, key }: Pick<Override, 'environmentId' | 'key'>): string {
  return `${environmentId}\0${key.toString('latin1')}`;
}

/** The log may have copies of decisions, also an earlier one after a later one. Only versions count. */
async function collectLater(rows: GraphSources['later'], isApplied: (place: DecidedFact) => boolean) {
  const later = new Map<string, VersionedOverride>();
  const sides: UnlinkSide[] = [];
  const suspects: LoggedSuspect[] = [];
  const places: DecidedFact[] = [];
  for await (const row of rows) {
    if ('side' in row) sides.push(row);
    else if ('state' in row) suspects.push(row);
    else if (!('key' in row)) {
      if (!isApplied(row)) places.push(row);
    } else {
      const name = toName(row);
      const known = later.get(name);
      if (known === undefined || known.version < row.version) later.set(name, row);
    }
  }
  return { later, sides, suspects, places };
}

/** Whether the fact of a decision will not be delivered again. */
function createIsApplied(applied: GraphSources['applied']): (place: DecidedFact) => boolean {
  const offsets = new Map(applied.map(({ generation, partition, offset }) => [`${generation}/${partition}`, offset]));
  return ({ generation, partition, offset }) => offset <= (offsets.get(`${generation}/${partition}`) ?? -1);
}

/** Whether a row is a remainder of an erased person: only rows up to the cut-off are. */
function createIsErased(fences: readonly Cutoff[]) {
  const cutoffs = new Map<string, number>();
  for (const fence of fences) {
    const name = toName(fence);
    cutoffs.set(name, Math.max(fence.cutoffMs, cutoffs.get(name) ?? fence.cutoffMs));
  }
  return (row: Pick<Override, 'environmentId' | 'key'>, sinceMs: number): boolean =>
    sinceMs <= (cutoffs.get(toName(row)) ?? Number.NEGATIVE_INFINITY);
}

function createLoader<R>(load: (rows: readonly R[]) => Promise<void>) {
  let rows: R[] = [];
  const flush = async () => {
    const full = rows;
    rows = [];
    await load(full);
  };
  return {
    flush,
    async add(row: R) {
      if (rows.push(row) >= LOAD_ROWS_MAX) await flush();
    },
  };
}
