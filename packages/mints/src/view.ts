import {
  createRecordReader,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
} from '@playline/contracts';
import { type MintState, toMintState, toRequestedState } from './states.ts';

export interface MintViewProgress {
  /** The store's current run; a restart begins a new run. */
  readonly run: string;
  /** The run in which the view was last complete. */
  readonly completeIn: string | null;
  /** The next offset by `topic/partition`. Earlier records were applied. */
  readonly offsets: ReadonlyMap<string, number>;
}

/** An update that is applied atomically. */
export interface MintUpdate {
  /** In log order. */
  readonly states: readonly MintState[];
  readonly to: { topic: string; partition: number; offset: number };
  /** The expected stored offset, or null if none is expected. */
  readonly from: number | null;
}

/** The latest state per reference id, rebuilt from the log. */
export interface MintView {
  progress(): Promise<MintViewProgress>;
  /** @returns false if another process has changed the offset */
  apply(update: MintUpdate): Promise<boolean>;
  /** Applies states that do not come from the log. */
  restore(states: readonly MintState[]): Promise<void>;
  /** Resets the offsets, so that both logs are applied again from the start. Until then, the view is incomplete. */
  forgetOffsets(): Promise<void>;
  /** Marks the view as complete, unless the store was restarted since this run. */
  complete(run: string): Promise<void>;
}

interface LogRange {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export interface MintLog {
  readonly topic: string;
  bounds(): Promise<readonly LogRange[]>;
  /** Yields records in log order, with null for an unreadable record. */
  read(range: LogRange): AsyncIterable<{ readonly offset: number; readonly state: MintState | null }>;
}

/** Applying this many states takes Redis one or two milliseconds. */
const STEP_MAX = 200;

/** Applies new records from both logs, states before requests. @returns the number of applied records */
export async function catchUpMints(view: MintView, logs: { states: MintLog; requests: MintLog }): Promise<number> {
  const { run, completeIn, offsets } = await view.progress();
  let count = 0;
  // Concurrent calls can share requests to the brokers.
  const [stateRanges, requestRanges] = await Promise.all([logs.states.bounds(), logs.requests.bounds()]);
  for (const [log, ranges] of [[logs.states, stateRanges] as const, [logs.requests, requestRanges] as const])
    for (const { partition, start, end } of ranges) {
      const from = offsets.get(`${log.topic}/${partition}`) ?? null;
      const applied = await applyNew(view, log, { partition, start, end, from });
      // Another process is applying the same records.
      if (applied === null) return count;
      count += applied;
    }
  if (completeIn !== run) await view.complete(run);
  return count;
}

interface Range extends LogRange {
  readonly from: number | null;
}

/** @returns null if another process has changed the offset */
async function applyNew(view: MintView, log: MintLog, { partition, start, end, from }: Range): Promise<number | null> {
  if (from === end) return 0;
  const { topic } = log;
  let to = from;
  let count = 0;
  let states: MintState[] = [];
  const applyStep = async (offset: number): Promise<boolean> => {
    const isApplied = await view.apply({ states, to: { topic, partition, offset }, from: to });
    to = offset;
    count += states.length;
    states = [];
    return isApplied;
  };
  // An offset beyond the end is from a log that has since been replaced.
  const begin = from !== null && from <= end ? Math.max(from, start) : start;
  for await (const { offset, state } of log.read({ partition, start: begin, end })) {
    if (state !== null) states.push(state);
    if (states.length >= STEP_MAX && !(await applyStep(offset + 1))) return null;
  }
  return (await applyStep(end)) ? count : null;
}

export interface MintLogsParts {
  readonly log: {
    bounds(topic: string): Promise<readonly LogRange[]>;
    read(
      range: LogRange & { topic: string },
    ): AsyncIterable<{ readonly offset: number; readonly value: Buffer | null }>;
  };
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
}

/** Opens both logs. Unreadable records have no state; the activity writer stores them as dead letters. */
export function createMintLogs(parts: MintLogsParts): { readonly states: MintLog; readonly requests: MintLog } {
  return {
    states: createLog(parts, { name: TOPICS.mintStates.name, codec: mintStateCodec, toState: toMintState }),
    requests: createLog(parts, { name: TOPICS.mintRequests.name, codec: mintRequestCodec, toState: toRequestedState }),
  };
}

function createLog<T>(
  { log, schemaOf, topicPrefix }: MintLogsParts,
  { name, codec, toState }: { name: string; codec: RecordCodec<T>; toState: (record: T) => MintState },
): MintLog {
  const topic = topicPrefix + name;
  const decode = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  return {
    topic,
    bounds: async () => {
      const bounds = await log.bounds(topic);
      // Otherwise, a missing topic would look like an empty log.
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
