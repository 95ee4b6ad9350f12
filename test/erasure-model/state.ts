import type { Cutoffs, Graph, Id, Log, Sent, Wish } from './people.ts';
import type { Part, Step } from './program.ts';

/** Things that may go wrong, each at most once and at any moment. */
export type Mishap =
  /**
   * Another writer takes over while the first is paused between its check of the fences and its insert. The first one
   * inserts later.
   */
  | 'zombie writer'
  /** A delete ends without deleting anything. */
  | 'delete fails'
  /** Everything in the log is read a second time. */
  | 'replay'
  /** A hold is gone: it expired, or Redis lost its last second of writes. */
  | 'hold is lost'
  /** The request is never written to its topic, and the gateway cannot know that. */
  | 'request is lost'
  /** Another eraser starts from the stored state. The first one may continue at any moment, or never. */
  | 'second eraser';

/** What is sent, in the order of the log; the requested erasures; what goes wrong. */
export interface World {
  readonly sent: readonly Sent[];
  readonly wishes: readonly Wish[];
  readonly mishaps?: readonly Mishap[];
}

export interface Variant {
  readonly world: World;
  readonly without?: Part;
  /** The eraser's steps in another order. */
  readonly program?: readonly Step[];
}

/** Records are numbers: the offset in `World.sent`. Erasures are numbers: the offset in `World.wishes`. */
export interface State {
  readonly sent: number;
  /** The uncommitted records of each topic. */
  readonly topics: Topics;
  /**
   * For each topic, whether the writer will keep its first record (no fence covers it), and whether it has inserted the
   * row.
   */
  readonly hands: Readonly<Record<Written, { readonly keep: boolean; readonly inserted: boolean } | null>>;
  /** Whether the current writer has loaded the fences. */
  readonly loaded: boolean;
  /** What the linker's script has made of the first link of the topic; null before it has run. */
  readonly decided: 'linked' | 'refused' | 'parked' | null;
  readonly graph: Graph;
  /** `unput`: consents in the log that their gateways have not put into Redis yet. `choices`: consents in Redis. */
  readonly unput: readonly number[];
  readonly choices: readonly number[];
  readonly rows: readonly number[];
  readonly fences: Cutoffs;
  readonly erasures: readonly Erasure[];
  readonly erasers: readonly Eraser[];
  /**
   * `zombie`: the event that a paused writer will insert, whatever has happened since. `revived`: what it has inserted.
   */
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
  /** Its offset in the program; -1 when it has ended for good. */
  readonly at: number;
  /** For each topic, how many records must still be committed before the eraser continues. */
  readonly awaited: Readonly<Partial<Record<Topic, number>>> | null;
  readonly batch: readonly number[];
  readonly found: Cutoffs;
  /** The ids for which this eraser itself has created a hold. */
  readonly held: readonly Id[];
}

export const IDLE: Eraser = { at: 0, awaited: null, batch: [], found: {}, held: [] };

export const startOf = ({ wishes }: World): State => ({
  sent: 0,
  topics: { events: [], links: [], decisions: [], consents: [] },
  hands: { events: null, decisions: null, consents: null },
  loaded: true,
  decided: null,
  graph: [],
  unput: [],
  choices: [],
  rows: [],
  fences: {},
  erasures: wishes.map(() => ({ requested: false, held: null, closure: null, hasReceipt: false })),
  erasers: [IDLE],
  zombie: null,
  revived: [],
  scrubbed: false,
  happened: [],
});

/** One step of an actor: its name, and what it changes. */
export type Move = readonly [step: string, change: Partial<State>];

/** What every actor knows of the world, and which part of the protocol is left out. */
export interface Rules {
  readonly log: Log;
  readonly program: readonly Step[];
  readonly has: (part: Part | Step) => boolean;
  /** Whether the record at this offset has an erased id and is not later than that id's cut-off. */
  readonly covers: (erased: Cutoffs, offset: number) => boolean;
  /** Whether this can go wrong in this world and has not happened yet. */
  readonly mayHappen: (state: State, mishap: Mishap) => boolean;
}

/** A copy of the list with one element changed. */
export const changed = <T>(list: readonly T[], at: number, change: Partial<T>): T[] =>
  list.map((each, offset) => (offset === at ? { ...each, ...change } : each));

/** Sorted, so that equal states have the same JSON. */
export const withOffset = (offsets: readonly number[], offset: number): number[] =>
  [...new Set([...offsets, offset])].sort((one, other) => one - other);

/** For each id the later cut-off. Sorted. */
export function merge(one: Cutoffs, other: Cutoffs): Cutoffs {
  const ids = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort() as Id[];
  return Object.fromEntries(ids.map((id) => [id, Math.max(one[id] ?? -1, other[id] ?? -1)]));
}

/** Commits the first record of a topic. `again`: records that go back to its end, as a link does that a hold delays. */
export function commit(state: State, topic: Topic, again: readonly number[] = []): Partial<State> {
  const topics = { ...state.topics, [topic]: [...state.topics[topic].slice(1), ...again] };
  const erasers = state.erasers.map((eraser) => {
    const count = eraser.awaited?.[topic];
    return count ? { ...eraser, awaited: { ...eraser.awaited, [topic]: count - 1 } } : eraser;
  });
  return { topics, erasers };
}
