import { comparePositions, type Position } from '@playline/chain';
import { isUuidText, parseTimestampMicros } from '@playline/contracts';
import type { Activity } from '../../../services/operator/src/replicate/history.ts';
import { type Differences, describeDifferences } from '../report.ts';
import { messageIdPrefix, type Run, sequenceOfId, toMessageId } from '../run.ts';
import type { MadeActivity } from './activities.ts';

/** Kinds of differences that a run about a chain can find; each makes the run fail. */
export type ChainDifferenceKind =
  | 'import' // the numbers of accepted, left out or refused lines are not as expected
  | 'missing' // the last acknowledged version of an activity is not served
  | 'doubled' // a version is served at two positions, or a position twice
  | 'uninvited' // a line that was refused, replaced before publishing, or never sent is served
  | 'member' // a member of an activity differs from the model
  | 'order' // a position is not after the one before, or an earlier version after a later one
  | 'backwards' // reading backwards differs from reading forwards
  | 'filter' // a filtered history differs from the model
  | 'token'; // a token differs from the model, or its ETag is wrong

export type ChainDifferences = Differences<ChainDifferenceKind>;

export interface Entry {
  /** Versions that were published, or may have been, oldest first, as JSON of what is served without the chain's id. */
  readonly versions: { readonly text: string; acknowledgedAtMs: number | null }[];
  readonly activity: MadeActivity;
  /** Published again after an unknown result: it may be served again without a new version. */
  mayRepeat: boolean;
  served: number;
  position: Position | null;
}

export type Ledger = ReturnType<typeof createLedger>;

/** Index of the last acknowledged version; -1 for none. */
export const lastAcknowledged = ({ versions }: Entry): number =>
  versions.findLastIndex(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);

const isPending = (entry: Entry) => entry.served < lastAcknowledged(entry);

/** A model of the history: what must be served, by activity number. */
export function createLedger() {
  const entries = new Map<number, Entry>();
  let [pending, acknowledged, published] = [0, 0, 0];
  /** Changes an entry, and updates the number of pending ones. */
  const change = (sequence: number, apply: (entry: Entry) => unknown) => {
    const entry = entries.get(sequence);
    if (entry === undefined) throw new RangeError('no such activity was made');
    const was = isPending(entry);
    apply(entry);
    pending += Number(isPending(entry)) - Number(was);
  };
  return {
    /** Notes a version before it is published. @returns its index */
    publish: (sequence: number, activity: MadeActivity): number => {
      published++;
      const version = { text: JSON.stringify(activity), acknowledgedAtMs: null };
      const entry = entries.get(sequence);
      if (entry !== undefined) return entry.versions.push(version) - 1;
      entries.set(sequence, { versions: [version], activity, mayRepeat: false, served: -1, position: null });
      return 0;
    },
    /** Notes that the version may be in the log twice. */
    repeat: (sequence: number): void => change(sequence, (entry) => Object.assign(entry, { mayRepeat: true })),
    acknowledge: (sequence: number, version: number, atMs: number): void => {
      acknowledged++;
      change(sequence, ({ versions }) => Object.assign(versions[version]!, { acknowledgedAtMs: atMs }));
    },
    /** Notes that a version was served. @returns when it was acknowledged; null when not yet, or when served before */
    serve: (sequence: number, version: number, position: Position): number | null => {
      const before = entries.get(sequence)?.served;
      change(sequence, (entry) => Object.assign(entry, { served: version, position }));
      return before === version ? null : entries.get(sequence)!.versions[version]!.acknowledgedAtMs;
    },
    find: (sequence: number): Entry | null => entries.get(sequence) ?? null,
    entries: () => entries.entries(),
    /** Activities whose last acknowledged version, or a later one, was not served yet. */
    get pending() {
      return pending;
    },
    get acknowledged() {
      return acknowledged;
    },
    /** Versions with an unknown result. */
    get unknown() {
      return published - acknowledged;
    },
  };
}

export function toPosition({ id, updated_at }: Activity): Position {
  return { id, updatedAt: parseTimestampMicros(updated_at) };
}

/** The number of an activity of this run; null for one of another source. */
export function sequenceOf(run: Run, id: string): number | null {
  if (!isUuidText(id) || !id.startsWith(messageIdPrefix(run))) return null;
  const sequence = sequenceOfId(id);
  return toMessageId(run, sequence) === id ? sequence : null;
}

/**
 * Creates the function that checks the positions of a reading, in the order in which they are served.
 * It returns whether a position is after the one before, in the direction of reading.
 */
export function createOrderCheck(
  name: string,
  { differences, isBackwards = false }: { differences: ChainDifferences; isBackwards?: boolean },
): (position: Position) => boolean {
  let before: Position | null = null;
  const describePosition = ({ id, updatedAt }: Position) => `${id} at ${updatedAt}`;
  return (position) => {
    const order = before === null ? 1 : comparePositions(position, before) * (isBackwards ? -1 : 1);
    if (order === 0) differences.add('doubled', `${name}: ${describePosition(position)} is served twice`);
    if (Number.isNaN(order) || order < 0)
      differences.add('order', `${name}: ${describePosition(position)} is served after ${describePosition(before!)}`);
    // A position that is too early must not make all later ones seem too late.
    if (order > 0) before = position;
    return order > 0;
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

export type Replica = ReturnType<typeof createReplica>;

/** Follows the history, and compares each activity with the model. */
export function createReplica({ run, chain, ledger, differences, onServed }: ReplicaOptions) {
  const checkOrder = createOrderCheck('forwards', { differences });
  let strangers = 0;
  const findVersion = (entry: Entry, activity: Activity): number => {
    const differencesOf = (index: number) => describeDifferences(toShown(entry, index, activity), activity);
    const isShown = (_: unknown, index: number) => differencesOf(index).length === 0;
    const { versions, served } = entry;
    const version = versions.findLastIndex(isShown);
    const { id } = activity;
    if (version === -1)
      for (const text of differencesOf(versions.length - 1)) differences.add('member', `${id} ${text}`);
    else if (version < served)
      differences.add('order', `${id}: version ${version + 1} is served after version ${served + 1}`);
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
    apply: (activity: Activity, atMs: number): void => {
      const position = toPosition(activity);
      const isInOrder = checkOrder(position);
      const sequence = sequenceOf(run, activity.id);
      if (sequence === null) return void strangers++;
      const entry = ledger.find(sequence);
      if (entry === null)
        return void differences.add('uninvited', `${activity.id} was refused, or never sent, and is served`);
      if (!isInOrder) return;
      const acknowledgedAtMs = ledger.serve(sequence, findVersion(entry, activity), position);
      if (acknowledgedAtMs !== null) onServed(Math.max(0, atMs - acknowledgedAtMs));
    },
    get strangers() {
      return strangers;
    },
  };
}
