import type { IdentityKind } from '@playline/contracts';
import type { StoredConsent } from '../../consents.ts';
import type { Applied, GraphLimits, GraphNote, LinkSourcePartition, LoggedSuspect, UnlinkSide } from '../../graph.ts';
import type { ErasureHold } from '../../guards.ts';
import type { GraphFact } from '../../identities/steps.ts';
import { MissingEpochFault, MissingFencesFault } from '../../people.ts';

export interface MemberState {
  kind: IdentityKind;
  linkedAt: number;
}

/** Orders an environment's facts. */
export type FactOrder = Pick<UnlinkSide, 'generation' | 'offset'>;
export const compareOrder = (a: FactOrder, b: FactOrder): number => a.generation - b.generation || a.offset - b.offset;

/** One environment. Identity keys are hexadecimal strings, which sort like their bytes. */
export interface EnvironmentState {
  roots: Map<string, string>;
  members: Map<string, Map<string, MemberState>>;
  fences: Map<string, number>;
  unlinkSides: Map<string, UnlinkSide[]>;
  suspects: Map<string, LoggedSuspect>;
  /** Facts decided before a rebuild. */
  decided: Set<string>;
  lastDecided: FactOrder | null;
  holds: Map<string, ErasureHold>;
  consents: Map<string, StoredConsent>;
  outbox: Map<string, Applied>;
}

/** All data in the memory store. */
export interface Model {
  readonly limits: GraphLimits;
  readonly environments: Map<string, EnvironmentState>;
  readonly progress: Map<string, number>;
  readonly notes: Map<string, GraphNote>;
  epoch: string | null;
  /** The current run; `fencedRun` is the run in which all fences were set. */
  run: number;
  fencedRun: number;
}

export function createModel(limits: GraphLimits): Model {
  return { limits, environments: new Map(), progress: new Map(), notes: new Map(), epoch: null, run: 1, fencedRun: 1 };
}

export function environmentOf({ environments }: Model, id: string): EnvironmentState {
  const known = environments.get(id);
  if (known !== undefined) return known;
  const maps = { roots: new Map(), members: new Map(), fences: new Map() };
  const unlinks = { unlinkSides: new Map(), suspects: new Map(), decided: new Set<string>(), lastDecided: null };
  const state = { ...maps, ...unlinks, holds: new Map(), consents: new Map(), outbox: new Map() };
  environments.set(id, state);
  return state;
}

/** @throws MissingEpochFault, MissingFencesFault */
export function assertComplete({ epoch, run, fencedRun }: Model): void {
  if (epoch === null) throw new MissingEpochFault();
  if (run !== fencedRun) throw new MissingFencesFault();
}

export function nameOf({ generation, partition }: LinkSourcePartition): string {
  return `${generation}/${partition}`;
}

export function appliedOf({ progress }: Model, source: LinkSourcePartition): number {
  return progress.get(nameOf(source)) ?? -1;
}

/** Latest cut-off per held key. */
export function cutoffsOfHolds({ holds }: Pick<EnvironmentState, 'holds'>): Map<string, number> {
  const cutoffs = new Map<string, number>();
  for (const { keys, cutoffMs } of holds.values()) for (const key of keys) raise(cutoffs, key, cutoffMs);
  return cutoffs;
}

/** Earliest cut-off among the holds of the identity's person, or null. */
export function heldFromOf(state: EnvironmentState, key: Buffer, cutoffs = cutoffsOfHolds(state)): number | null {
  const hex = key.toString('hex');
  const members = state.members.get(state.roots.get(hex) ?? '')?.keys() ?? [hex];
  const held = [...members].flatMap((member) => cutoffs.get(member) ?? []);
  return held.length === 0 ? null : held.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
}

/** Whether a fence refuses the fact. */
export function isFenced({ fences }: EnvironmentState, key: string, fact: GraphFact): boolean {
  const cutoffMs = fences.get(key);
  return cutoffMs !== undefined && (fact.receivedAt <= cutoffMs || fact.eventTime <= cutoffMs);
}

export function raise(cutoffs: Map<string, number>, key: Buffer, cutoffMs: number): void {
  const hex = key.toString('hex');
  cutoffs.set(hex, Math.max(cutoffMs, cutoffs.get(hex) ?? 0));
}

/** Deletes a held suspect created up to `throughMs`. Rulings are kept. */
export function dropSuspect({ suspects }: EnvironmentState, key: string, throughMs: number): void {
  const known = suspects.get(key);
  if (known?.state === 'held' && known.since <= throughMs) suspects.delete(key);
}

export function removeMember(state: EnvironmentState, key: string): MemberState | undefined {
  const root = state.roots.get(key);
  const members = root === undefined ? undefined : state.members.get(root);
  const known = members?.get(key);
  members?.delete(key);
  state.roots.delete(key);
  if (members?.size === 0) state.members.delete(root!);
  return known;
}
