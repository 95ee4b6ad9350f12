import type { Cutoffs, Graph, Id, Log, Sent, Wish } from './people.ts';
import type { Part, Step } from './program.ts';

/** What may happen once, at any moment. */
export type Mishap =
  /** Another writer takes over while the first is paused between its look at the fences and its insert; it goes on later. */
  | 'zombie writer'
  /** A delete ends without having deleted anything. */
  | 'delete fails'
  /** Everything in the log is read a second time. */
  | 'replay'
  /** A hold is gone: it lapsed, or Redis lost its last second. */
  | 'hold is lost'
  /** The request is never written to its topic, and the gateway cannot know that. */
  | 'request is lost'
  /** Another eraser starts from what is stored; the first one may go on at any moment, or never again. */
  | 'second eraser';

/** What is sent, in the order of the log, what is asked for, and what goes wrong. */
export interface World {
  readonly sent: readonly Sent[];
  readonly wishes: readonly Wish[];
  readonly mishaps?: readonly Mishap[];
}

export interface Variant {
  readonly world: World;
  readonly without?: Part;
  /** Another order of the eraser's steps. */
  readonly program?: readonly Step[];
}

/** Numbers of events, links, their decisions and consents are places in what is sent; those of erasures, in the wishes. */
export interface State {
  readonly sent: number;
  /** What stands in each topic and is not committed. */
  readonly topics: Topics;
  /** By topic, whether the writer found the first record free of fences, and has inserted it. */
  readonly hands: Readonly<Record<Written, { readonly keep: boolean; readonly inserted: boolean } | null>>;
  /** Whether the present writer knows the fences. */
  readonly loaded: boolean;
  /** What became of the first link of its topic; null before the linker's script has run. */
  readonly decided: 'linked' | 'refused' | 'parked' | null;
  readonly graph: Graph;
  /** Consents that stand in the log and that their gateways have not put into Redis yet; those that Redis answers. */
  readonly unput: readonly number[];
  readonly choices: readonly number[];
  readonly rows: readonly number[];
  readonly fences: Cutoffs;
  readonly erasures: readonly Erasure[];
  readonly erasers: readonly Eraser[];
  /** The event that a paused writer will insert whatever has happened since, and what it has inserted. */
  readonly zombie: number | null;
  readonly revived: readonly number[];
  readonly scrubbed: boolean;
  readonly happened: readonly Mishap[];
}

export type Written = 'events' | 'decisions' | 'consents';
export type Topic = Written | 'links';
export type Topics = Readonly<Record<Topic, readonly number[]>>;

/** What is stored of an erasure, whoever works on it. */
export interface Erasure {
  /** Whether its request stands on the topic. */
  readonly asked: boolean;
  readonly held: readonly Id[] | null;
  readonly closure: Cutoffs | null;
  readonly hasReceipt: boolean;
}

/** What an eraser knows by heart. */
export interface Eraser {
  /** Where in its program; -1 when it has ended for good. */
  readonly at: number;
  /** How many records of each topic are still to be committed until it goes on. */
  readonly awaited: Readonly<Partial<Record<Topic, number>>> | null;
  readonly batch: readonly number[];
  readonly found: Cutoffs;
  /** Whom it has held itself. */
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
  erasures: wishes.map(() => ({ asked: false, held: null, closure: null, hasReceipt: false })),
  erasers: [IDLE],
  zombie: null,
  revived: [],
  scrubbed: false,
  happened: [],
});

/** What one step of somebody changes, and what it is called. */
export type Move = readonly [words: string, change: Partial<State>];

/** What every actor is told about the world and about what is left out. */
export interface Rules {
  readonly log: Log;
  readonly program: readonly Step[];
  readonly has: (part: Part | Step) => boolean;
  /** Whether what stands at this place is of an erased id, and not later than its cut-off. */
  readonly covers: (erased: Cutoffs, place: number) => boolean;
  /** Whether it is part of this world and has not happened yet. */
  readonly mayHappen: (state: State, mishap: Mishap) => boolean;
}

/** The same with one of a list changed. */
export const changed = <T>(list: readonly T[], at: number, change: Partial<T>): T[] =>
  list.map((each, place) => (place === at ? { ...each, ...change } : each));

/** In one order, so that states that hold the same are one. */
export const withPlace = (places: readonly number[], place: number): number[] =>
  [...new Set([...places, place])].sort((one, other) => one - other);

/** The later cut-off of each id, in one order. */
export function merge(one: Cutoffs, other: Cutoffs): Cutoffs {
  const ids = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort() as Id[];
  return Object.fromEntries(ids.map((id) => [id, Math.max(one[id] ?? -1, other[id] ?? -1)]));
}

/** The first record of a topic is committed. `again`: it stands at the end once more, as a link that waits for a hold does. */
export function commit(state: State, topic: Topic, again: readonly number[] = []): Partial<State> {
  const topics = { ...state.topics, [topic]: [...state.topics[topic].slice(1), ...again] };
  const erasers = state.erasers.map((eraser) => {
    const count = eraser.awaited?.[topic];
    return count ? { ...eraser, awaited: { ...eraser.awaited, [topic]: count - 1 } } : eraser;
  });
  return { topics, erasers };
}
