import type { Cutoffs, Graph, Id, Log, RequestedErasure, Sent } from './people.ts';
import type { Part, Step } from './program.ts';

/** Things that may go wrong, each at most once and at any moment. */
export type Mishap =
  /** Another writer takes over while the first writer is paused between its fence check and its insert. */
  | 'zombie writer'
  /** A delete ends without deleting anything. */
  | 'delete fails'
  /** The whole log is read a second time. */
  | 'replay'
  /** A hold is lost: it expired, or Redis lost its last second of writes. */
  | 'hold is lost'
  /** The request is never written to its topic, and the gateway cannot know that. */
  | 'request is lost'
  /** Another eraser starts from the stored state. The first eraser may continue at any moment, or never. */
  | 'second eraser';

/** The sent records in log order; the requested erasures; what goes wrong. */
export interface World {
  readonly sent: readonly Sent[];
  readonly requests: readonly RequestedErasure[];
  readonly mishaps?: readonly Mishap[];
}

export interface Variant {
  readonly world: World;
  readonly without?: Part;
  /** The eraser's steps in another order. */
  readonly program?: readonly Step[];
}

/** Records are offsets in `World.sent`. Erasures are indexes in `World.requests`. */
export interface State {
  readonly sent: number;
  /** The uncommitted records per topic. */
  readonly topics: Topics;
  /** For each topic, whether the writer keeps its first record (no fence covers it) and has inserted the row. */
  readonly inFlight: Readonly<Record<Written, { readonly keep: boolean; readonly inserted: boolean } | null>>;
  /** Whether the current writer has loaded the fences. */
  readonly loaded: boolean;
  /** Result of the linker's script for the first link of the topic; null before the script has run. */
  readonly decided: 'linked' | 'refused' | 'parked' | null;
  readonly graph: Graph;
  /**
   * `unwritten`: consents in the log that their gateways have not written to Redis yet. `choices`: consents in Redis.
   */
  readonly unwritten: readonly number[];
  readonly choices: readonly number[];
  readonly rows: readonly number[];
  readonly fences: Cutoffs;
  readonly erasures: readonly Erasure[];
  readonly erasers: readonly Eraser[];
  /** `zombie`: the event that a paused writer will insert. `revived`: the event that it has inserted. */
  readonly zombie: number | null;
  readonly revived: readonly number[];
  readonly scrubbed: boolean;
  readonly happened: readonly Mishap[];
}

export type Written = 'events' | 'decisions' | 'consents';
export type Topic = Written | 'links';
export type Topics = Readonly<Record<Topic, readonly number[]>>;

/** The stored state of an erasure, whichever eraser works on it. */
export interface Erasure {
  /** Whether its request is on the topic. */
  readonly requested: boolean;
  readonly held: readonly Id[] | null;
  readonly closure: Cutoffs | null;
  readonly hasReceipt: boolean;
}

/** What an eraser has in memory. */
export interface Eraser {
  /** Index of its next step in the program; -1 when it has ended permanently. */
  readonly at: number;
  /** For each topic, how many records must still be committed before the eraser continues. */
  readonly awaited: Readonly<Partial<Record<Topic, number>>> | null;
  readonly batch: readonly number[];
  readonly found: Cutoffs;
  /** The ids for which this eraser has created a hold. */
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
  happened: [],
});

/** One step of an actor: the name of the step, and what it changes. */
export type Move = readonly [step: string, change: Partial<State>];

/** What every actor knows about the world, and which part of the protocol is omitted. */
export interface Rules {
  readonly log: Log;
  readonly program: readonly Step[];
  readonly has: (part: Part | Step) => boolean;
  /** Whether the record at this offset contains an erased id and is not later than that id's cut-off. */
  readonly covers: (erased: Cutoffs, offset: number) => boolean;
  /** Whether the mishap can happen in this world and has not happened yet. */
  readonly mayHappen: (state: State, mishap: Mishap) => boolean;
}

/** A copy of the list with one element changed. */
export const changed = <T>(list: readonly T[], at: number, change: Partial<T>): T[] =>
  list.map((each, offset) => (offset === at ? { ...each, ...change } : each));

/** Sorted, so that equal states have the same JSON. */
export const withOffset = (offsets: readonly number[], offset: number): number[] =>
  [...new Set([...offsets, offset])].sort((a, b) => a - b);

/** For each id, the later cut-off. Sorted. */
export function merge(a: Cutoffs, b: Cutoffs): Cutoffs {
  const ids = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort() as Id[];
  return Object.fromEntries(ids.map((id) => [id, Math.max(a[id] ?? -1, b[id] ?? -1)]));
}

/**
 * Commits the first record of a topic. `requeued`: records appended to the topic again, such as a link that a hold
 * delays.
 */
export function commit(state: State, topic: Topic, requeued: readonly number[] = []): Partial<State> {
  const topics = { ...state.topics, [topic]: [...state.topics[topic].slice(1), ...requeued] };
  const erasers = state.erasers.map((eraser) => {
    const count = eraser.awaited?.[topic];
    return count ? { ...eraser, awaited: { ...eraser.awaited, [topic]: count - 1 } } : eraser;
  });
  return { topics, erasers };
}
