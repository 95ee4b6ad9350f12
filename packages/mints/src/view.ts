import type { MintState } from './states.ts';

/** How far a log has been brought in. */
export interface MintPlace {
  readonly topic: string;
  readonly partition: number;
  /** In front of it everything was brought in. */
  readonly offset: number;
}

export interface MintViewStanding {
  /** Names the present run of the store. */
  readonly run: string;
  /** The run in which everything was there; null for none. */
  readonly completeIn: string | null;
  /** By `topic/partition`. */
  readonly places: ReadonlyMap<string, number>;
}

/** What is brought in, in one step. */
export interface MintUpdate {
  /** In the order of the log. */
  readonly states: readonly MintState[];
  readonly place: MintPlace;
  /** Where the place must stand, else nothing is done; null: nowhere yet. */
  readonly from: number | null;
}

/** The latest state of each reference id, made of the log: it can always be made again. */
export interface MintView {
  standing(): Promise<MintViewStanding>;
  /** @returns false when the place stood elsewhere: somebody else has moved it, and nothing was done */
  apply(update: MintUpdate): Promise<boolean>;
  /** Brings in what is kept elsewhere than on the log. */
  restore(states: readonly MintState[]): Promise<void>;
  /** Forgets how far the log was brought in, so that it is read anew; until then nothing is complete. */
  forgetPlaces(): Promise<void>;
  /** Everything is there. Does nothing when that run is over. */
  complete(run: string): Promise<void>;
}

/** A log as far as a view reads it. */
export interface MintLog {
  readonly topic: string;
  bounds(): Promise<readonly { readonly partition: number; readonly start: number; readonly end: number }[]>;
  /** States in the order of the log, each with its offset; null where a record holds none. */
  read(range: {
    partition: number;
    start: number;
    end: number;
  }): AsyncIterable<{ readonly offset: number; readonly state: MintState | null }>;
}

/** Records of one step: a script of a millisecond or two. */
const STEP_MAX = 200;

/**
 * Brings into the view what the logs have and it lacks. All that the minter has said comes before any request, so that a
 * request that came behind a failure is judged by the failure.
 * @param logs of states, then of requests
 * @returns how many records were brought in
 */
export async function catchUpMints(view: MintView, logs: { states: MintLog; requests: MintLog }): Promise<number> {
  const { run, completeIn, places } = await view.standing();
  let count = 0;
  for (const log of [logs.states, logs.requests])
    for (const { partition, start, end } of await log.bounds()) {
      const from = places.get(`${log.topic}/${partition}`) ?? null;
      const steps = await bringIn(view, log, { partition, start, end, from });
      // Somebody else brings the same in: what they have not done yet is done at the next look.
      if (steps === null) return count;
      count += steps;
    }
  if (completeIn !== run) await view.complete(run);
  return count;
}

interface Range {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  readonly from: number | null;
}

/** Null when somebody else has moved the place. */
async function bringIn(view: MintView, log: MintLog, { partition, start, end, from }: Range): Promise<number | null> {
  if (from === end) return 0;
  const { topic } = log;
  let place = from;
  let count = 0;
  let states: MintState[] = [];
  const step = async (offset: number): Promise<boolean> => {
    const isDone = await view.apply({ states, place: { topic, partition, offset }, from: place });
    place = offset;
    count += states.length;
    states = [];
    return isDone;
  };
  // A place behind the end is of a log that was replaced: what it holds is brought in as it is found.
  const begin = from !== null && from <= end ? Math.max(from, start) : start;
  for await (const { offset, state } of log.read({ partition, start: begin, end })) {
    if (state !== null) states.push(state);
    if (states.length >= STEP_MAX && !(await step(offset + 1))) return null;
  }
  return (await step(end)) ? count : null;
}
