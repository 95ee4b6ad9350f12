import { comparePositions, type Position } from '@playline/chain';
import { isUuidText, parseTimestampMicros } from '@playline/contracts';
import type { Activity } from '../replicate/history.ts';
import { messageIdPrefix, type Run, toMessageId } from '../simulate/run.ts';
import { describeDifferences } from './compare.ts';
import type { ChainDifferences } from './kinds.ts';
import type { Entry, Ledger } from './ledger.ts';

/** Where an activity is served. */
export function toPosition({ id, updated_at }: Activity): Position {
  return { id, updatedAt: parseTimestampMicros(updated_at) };
}

const SEQUENCE_DIGITS = 8;

/** The number of an activity of this run; null for one of another source. */
export function sequenceOf(run: Run, id: string): number | null {
  if (!isUuidText(id) || !id.startsWith(messageIdPrefix(run))) return null;
  const sequence = Number.parseInt(id.slice(-SEQUENCE_DIGITS), 16);
  return toMessageId(run, sequence) === id ? sequence : null;
}

/** Checks that places of a history are served in order, and reports those that are not. */
export interface OrderJudge {
  /** @returns whether it comes after the place before, in the direction of reading */
  see(position: Position): boolean;
}

/** Checks the places of one reading, in the order in which they come. @param name of the reading */
export function createOrderJudge(
  name: string,
  { differences, isBackwards = false }: { differences: ChainDifferences; isBackwards?: boolean },
): OrderJudge {
  let before: Position | null = null;
  const sayOf = ({ id, updatedAt }: Position) => `${id} at ${updatedAt}`;
  return {
    see: (position) => {
      const order = before === null ? 1 : comparePositions(position, before) * (isBackwards ? -1 : 1);
      if (order === 0) differences.add('doubled', `${name}: ${sayOf(position)} comes twice`);
      if (Number.isNaN(order) || order < 0)
        differences.add('order', `${name}: ${sayOf(position)} comes after ${sayOf(before!)}`);
      // A place that comes too early must not make all later ones look too late.
      if (order > 0) before = position;
      return order > 0;
    },
  };
}

export interface ReplicaOptions {
  readonly run: Run;
  readonly chain: { readonly name: string; readonly id: string | null };
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  /** Called when a version is first served, with the milliseconds since its acknowledgement. */
  readonly onServed: (ms: number) => void;
}

/** Follows the history, and compares each activity with the model. */
export interface Replica {
  apply(activity: Activity, atMs: number): void;
  /** Number of activities of other sources. */
  readonly strangers: number;
}

export function createReplica({ run, chain, ledger, differences, onServed }: ReplicaOptions): Replica {
  const order = createOrderJudge('forwards', { differences });
  let strangers = 0;
  const judgeVersion = (entry: Entry, activity: Activity): number => {
    const differencesOf = (index: number) => describeDifferences(toShown(entry, index, activity), activity);
    const isShown = (_: unknown, index: number) => differencesOf(index).length === 0;
    const { versions, served } = entry;
    const version = versions.findLastIndex(isShown);
    const { id } = activity;
    if (version === -1)
      for (const text of differencesOf(versions.length - 1)) differences.add('member', `${id} ${text}`);
    else if (version < served)
      differences.add('order', `${id}: version ${version + 1} is served behind version ${served + 1}`);
    else if (version === served && !entry.mayRepeat)
      differences.add('doubled', `${id}: version ${version + 1} is served again, at ${activity.updated_at}`);
    // An activity that is served with wrong contents is not also reported as missing.
    return version === -1 ? versions.length - 1 : Math.max(version, served);
  };
  const toShown = ({ versions }: Entry, index: number, { updated_at, chain: shown }: Activity): object => {
    // If the chain's id is not known, any shown id is accepted.
    const id = chain.id ?? (shown as { id?: unknown } | null)?.id;
    return { ...(JSON.parse(versions[index]!.text) as object), updated_at, chain: { id, name: chain.name } };
  };
  return {
    apply: (activity, atMs) => {
      const position = toPosition(activity);
      const isInOrder = order.see(position);
      const sequence = sequenceOf(run, activity.id);
      if (sequence === null) return void strangers++;
      const entry = ledger.find(sequence);
      if (entry === null)
        return differences.add('uninvited', `${activity.id} was refused, or never sent, and is served`);
      if (!isInOrder) return;
      const acknowledgedAtMs = ledger.serve(sequence, judgeVersion(entry, activity), position);
      if (acknowledgedAtMs !== null) onServed(Math.max(0, atMs - acknowledgedAtMs));
    },
    get strangers() {
      return strangers;
    },
  };
}
