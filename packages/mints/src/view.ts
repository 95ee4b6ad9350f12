import {
  createRecordReader,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
} from '@playline/contracts';
import { type MintState, toMintState, toRequestedState } from './states.ts';

/** How far a partition of a log has been applied to the view. */
export interface AppliedOffset {
  readonly topic: string;
  readonly partition: number;
  /** All records before it were applied. */
  readonly offset: number;
}

export interface MintViewProgress {
  /** Identifies the present run of the store. */
  readonly run: string;
  /** The run in which the view was complete; null for none. */
  readonly completeIn: string | null;
  /** By `topic/partition`. */
  readonly offsets: ReadonlyMap<string, number>;
}

/** States that are applied in one step. */
export interface MintUpdate {
  /** In the order of the log. */
  readonly states: readonly MintState[];
  readonly to: AppliedOffset;
  /** The expected offset; null when there is none yet. If it differs, nothing is done. */
  readonly from: number | null;
}

/** The latest state of each reference id. It is made from the log and can always be rebuilt. */
export interface MintView {
  progress(): Promise<MintViewProgress>;
  /** @returns false when the offset differed: another process has moved it, and nothing was done */
  apply(update: MintUpdate): Promise<boolean>;
  /** Applies states that come from elsewhere than the log. */
  restore(states: readonly MintState[]): Promise<void>;
  /** Forgets how far the logs were applied, so that they are read again. Until then the view is incomplete. */
  forgetOffsets(): Promise<void>;
  /** Marks the view as complete. Does nothing when the run is over. */
  complete(run: string): Promise<void>;
}

/** What a view needs of a log. */
export interface MintLog {
  readonly topic: string;
  bounds(): Promise<readonly { readonly partition: number; readonly start: number; readonly end: number }[]>;
  /** States in the order of the log with their offsets; null for a record without a state. */
  read(range: {
    partition: number;
    start: number;
    end: number;
  }): AsyncIterable<{ readonly offset: number; readonly state: MintState | null }>;
}

/** Records per step. The script then takes a millisecond or two. */
const STEP_MAX = 200;

/**
 * Applies new records of the logs to the view. States come before requests, so that a request after a failure is judged
 * with that failure known.
 * @param logs the logs of states and of requests
 * @returns how many records were applied
 */
export async function catchUpMints(view: MintView, logs: { states: MintLog; requests: MintLog }): Promise<number> {
  const { run, completeIn, offsets: places } = await view.progress();
  let count = 0;
  // Both at once share their requests to the brokers.
  const [ofStates, ofRequests] = await Promise.all([logs.states.bounds(), logs.requests.bounds()]);
  for (const [log, ranges] of [[logs.states, ofStates] as const, [logs.requests, ofRequests] as const])
    for (const { partition, start, end } of ranges) {
      const from = places.get(`${log.topic}/${partition}`) ?? null;
      const steps = await bringIn(view, log, { partition, start, end, from });
      // Another process applies the same records. The next run does what it left.
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

/** Null when another process has moved the offset. */
async function bringIn(view: MintView, log: MintLog, { partition, start, end, from }: Range): Promise<number | null> {
  if (from === end) return 0;
  const { topic } = log;
  let place = from;
  let count = 0;
  let states: MintState[] = [];
  const step = async (offset: number): Promise<boolean> => {
    const isDone = await view.apply({ states, to: { topic, partition, offset }, from: place });
    place = offset;
    count += states.length;
    states = [];
    return isDone;
  };
  // An offset beyond the end comes from a log that was replaced. The new log is applied from its start.
  const begin = from !== null && from <= end ? Math.max(from, start) : start;
  for await (const { offset, state } of log.read({ partition, start: begin, end })) {
    if (state !== null) states.push(state);
    if (states.length >= STEP_MAX && !(await step(offset + 1))) return null;
  }
  return (await step(end)) ? count : null;
}

/** A log that is read at given offsets. */
export interface MintLogBytes {
  bounds(
    topic: string,
  ): Promise<readonly { readonly partition: number; readonly start: number; readonly end: number }[]>;
  read(range: {
    topic: string;
    partition: number;
    start: number;
    end: number;
  }): AsyncIterable<{ readonly offset: number; readonly value: Buffer | null }>;
}

export interface MintLogsParts {
  readonly log: MintLogBytes;
  readonly schemaOf: SchemaSource;
  /** Put before every topic name. */
  readonly topicPrefix: string;
}

/** The logs that the view is made from. Skips unreadable records, which the activity writer makes dead letters. */
export function createMintLogs(parts: MintLogsParts): { readonly states: MintLog; readonly requests: MintLog } {
  return {
    states: createLog(parts, { name: TOPICS.mintStates.name, codec: mintStateCodec, toState: toMintState }),
    requests: createLog(parts, { name: TOPICS.mintRequests.name, codec: mintRequestCodec, toState: toRequestedState }),
  };
}

interface Subject<T> {
  readonly name: string;
  readonly codec: RecordCodec<T>;
  readonly toState: (record: T) => MintState;
}

function createLog<T>({ log, schemaOf, topicPrefix }: MintLogsParts, { name, codec, toState }: Subject<T>): MintLog {
  const topic = topicPrefix + name;
  const decode = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  return {
    topic,
    bounds: async () => {
      const bounds = await log.bounds(topic);
      // Without this, a missing topic would look like a log without requests.
      if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
      return bounds;
    },
    async *read(range) {
      for await (const { offset, value } of log.read({ topic, ...range })) {
        const found = await decode(value);
        yield { offset, state: found.kind === 'record' ? toState(found.record) : null };
      }
    },
  };
}
