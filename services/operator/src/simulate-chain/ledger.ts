import type { Position } from '@playline/chain';
import type { MadeActivity } from './activity.ts';

/** What is known of one activity of the run. */
export interface Entry {
  /** Versions that were published, or may have been, oldest first, as JSON of what is served without the chain's id. */
  readonly versions: { readonly text: string; acknowledgedAtMs: number | null }[];
  readonly activity: MadeActivity;
  /** Published again because the first result was unknown: it may be served again without a new version. */
  mayRepeat: boolean;
  /** Index of the last served version; -1 before any. */
  served: number;
  /** Where it was last served. */
  position: Position | null;
}

/** The simulator's own model of a history: by activity number, what must be served. */
export interface Ledger {
  /** Notes a version before it is published. @returns its index */
  publish(sequence: number, activity: MadeActivity): number;
  /** Notes that the version may be in the log twice. */
  repeat(sequence: number): void;
  acknowledge(sequence: number, version: number, atMs: number): void;
  /** Notes that a version was served. @returns when it was acknowledged; null when not yet, or when served before */
  serve(sequence: number, version: number, position: Position): number | null;
  find(sequence: number): Entry | null;
  entries(): IterableIterator<readonly [number, Entry]>;
  /** Number of activities whose last acknowledged version, or a later one, was not served yet. */
  readonly pending: number;
  /** Number of acknowledged versions, and of those with an unknown result. */
  readonly acknowledged: number;
  readonly unknown: number;
}

/** Index of the last acknowledged version; -1 for none. */
export const lastAcknowledged = ({ versions }: Entry): number =>
  versions.findLastIndex(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);

const isPending = (entry: Entry) => entry.served < lastAcknowledged(entry);

export function createLedger(): Ledger {
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
    publish: (sequence, activity) => {
      published++;
      const version = { text: JSON.stringify(activity), acknowledgedAtMs: null };
      const entry = entries.get(sequence);
      if (entry !== undefined) return entry.versions.push(version) - 1;
      entries.set(sequence, { versions: [version], activity, mayRepeat: false, served: -1, position: null });
      return 0;
    },
    repeat: (sequence) => change(sequence, (entry) => Object.assign(entry, { mayRepeat: true })),
    acknowledge: (sequence, version, atMs) => {
      acknowledged++;
      change(sequence, ({ versions }) => Object.assign(versions[version]!, { acknowledgedAtMs: atMs }));
    },
    serve: (sequence, version, position) => {
      const before = entries.get(sequence)?.served;
      change(sequence, (entry) => Object.assign(entry, { served: version, position }));
      return before === version ? null : entries.get(sequence)!.versions[version]!.acknowledgedAtMs;
    },
    find: (sequence) => entries.get(sequence) ?? null,
    entries: () => entries.entries(),
    get pending() {
      return pending;
    },
    get acknowledged() {
      return acknowledged;
    },
    get unknown() {
      return published - acknowledged;
    },
  };
}
