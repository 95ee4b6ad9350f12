import {
  createRecordReader,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
} from '@playline/contracts';
import { type MintState, toMintState, toRequestedState } from './states.ts';
import type { MintLog } from './view.ts';

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
