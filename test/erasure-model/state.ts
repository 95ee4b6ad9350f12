import type { Cutoffs, Graph, Id, Log, RequestedErasure, Sent } from './people.ts';
import type { Part, Step } from './program.ts';

/** Things that can go wrong, each at most once and at any time. */
export type Mishap =
  /** Another writer takes over while the first writer is paused between the fence check and the insert. */
  | 'zombie writer'
  /** A delete completes without deleting any rows. */
  | 'delete fails'
  /** The whole log is reread. */
  | 'replay'
  /** A hold expires or is lost with the last second of writes to Redis. */
  | 'hold is lost'
  /** The request is never written to its topic, and the gateway cannot detect this. */
  | 'request is lost'
  /** Another eraser starts from the stored state. The first eraser may continue at any time or never. */
  | 'second eraser';

/** The records in log order, the erasure requests, and what can go wrong. */
export interface World {
  readonly sent: readonly Sent[];
  readonly requests: readonly RequestedErasure[];
  readonly mishaps?: readonly Mishap[];
}

export interface Variant {
  readonly world: World;
  readonly omitted?: Part;
  /** The eraser's steps, if their order is changed. */
  readonly program?: readonly Step[];
}

/** Records are offsets in `World.sent`. Erasures are indexes in `World.requests`. */
export interface State {
  readonly sent: number;
  readonly topics: Topics;
  /**
   * For each topic, whether the writer keeps the first record (if no fence covers it) and has inserted the row.
   */
  readonly inFlight: Readonly<Record<Written, { readonly keep: boolean; readonly inserted: boolean } | null>>;
  /** Whether the current writer has loaded the fences. */
  readonly loaded: boolean;
  /** Result of the linker's script for the first link in the topic; null before the script has run. */
  readonly decided: 'linked' | 'refused' | 'parked' | null;
  readonly graph: Graph;
  /** `unwritten`: logged consents that are not in Redis yet. `choices`: consents in Redis. */
  readonly unwritten: readonly number[];
  readonly choices: readonly number[];
  readonly rows: readonly number[];
  readonly fences: Cutoffs;
  readonly erasures: readonly Erasure[];
  readonly erasers: readonly Eraser[];
  /** `zombie`: event that a paused writer will insert. `revived`: event that a paused writer has inserted. */
  readonly zombie: number | null;
  readonly revived: readonly number[];
  readonly scrubbed: boolean;
  readonly mishaps: readonly Mishap[];
}

export type Written = 'events' | 'decisions' | 'consents';
export type Topic = Written | 'links';
export type Topics = Readonly<Record<Topic, readonly number[]>>;

/** Stored state of an erasure, shared by all erasers. */
export interface Erasure {
  readonly requested: boolean;
  readonly held: readonly Id[] | null;
  readonly closure: Cutoffs | null;
  readonly hasReceipt: boolean;
}

export interface Eraser {
  /** Index of the next step in the program; -1 if the eraser has ended permanently. */
  readonly at: number;
  /** Number of records per topic that must be committed before the eraser continues. */
  readonly awaited: Readonly<Partial<Record<Topic, number>>> | null;
  readonly batch: readonly number[];
  readonly found: Cutoffs;
  /** Ids for which this eraser has created a hold. */
  readonly held: readonly Id[];
}

export const IDLE: Eraser = { at: 0, awaited: null, batch: [], found: {}, held: [] };

export const startOf = ({ requests }: World): State => ({
  sent: 0,
  topics: { events: [], links: [], decisions: [], consents: [] },
  inFlight: { events: null, decisions: null, consents: null },
  loaded: true,
  decided: null,
  graph: [],
  unwritten: [],
  choices: [],
  rows: [],
  fences: {},
  erasures: requests.map(() => ({ requested: false, held: null, closure: null, hasReceipt: false })),
  erasers: [IDLE],
  zombie: null,
  revived: [],
  scrubbed: false,
  mishaps: [],
});

/** A step of an actor: its name and the resulting change. */
export type Move = readonly [step: string, change: Partial<State>];

/** Context shared by all actors. */
export interface Rules {
  readonly log: Log;
  readonly program: readonly Step[];
  readonly has: (part: Part | Step) => boolean;
  /** Whether the record contains an erased id and is not later than the id's cut-off. */
  readonly covers: (erased: Cutoffs, offset: number) => boolean;
  /** Whether the mishap is possible in this world and has not happened yet. */
  readonly mayHappen: (state: State, mishap: Mishap) => boolean;
}

export const updateAt = <T>(list: readonly T[], at: number, change: Partial<T>): T[] =>
  list.map((each, offset) => (offset === at ? { ...each, ...change } : each));

/** Sorted, so that equal states have the same JSON. */
export const withOffset = (offsets: readonly number[], offset: number): number[] =>
  [...new Set([...offsets, offset])].sort((a, b) => a - b);

/** Merges two maps, keeping the later cut-off per id. Sorted. */
export function merge(a: Cutoffs, b: Cutoffs): Cutoffs {
  const ids = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort() as Id[];
  return Object.fromEntries(ids.map((id) => [id, Math.max(a[id] ?? -1, b[id] ?? -1)]));
}

/**
 * Commits the first record in a topic.
 * @param requeued records to republish, such as a link that a hold delays
 */
export function commit(state: State, topic: Topic, requeued: readonly number[] = []): Partial<State> {
  const topics = { ...state.topics, [topic]: [...state.topics[topic].slice(1), ...requeued] };
  const erasers = state.erasers.map((eraser) => {
    const count = eraser.awaited?.[topic];
    return count ? { ...eraser, awaited: { ...eraser.awaited, [topic]: count - 1 } } : eraser;
  });
  return { topics, erasers };
}
