import {
  createRecordReader,
  type MessageRecord,
  messageRecordCodec,
  type RejectionRecord,
  rejectionCodec,
  type SchemaSource,
} from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';
import { type LiveEntry, toMessageEntry, toPosition, toRejectionEntry } from './entry.ts';
import type { LiveLimits } from './limits.ts';

/** The topics that are looked at, as they are called on the brokers. */
export interface LiveTopics {
  readonly messages: string;
  readonly rejections: string;
  /** Dead letters of both. */
  readonly deadLetters: readonly string[];
}

/** What a record means to whoever looks. */
export type LiveRecord =
  | { readonly kind: 'entry'; readonly entry: LiveEntry }
  /** A record that was read before could not be stored; `entry` where it was not read, or is not held any more. */
  | { readonly kind: 'letter'; readonly place: string; readonly reason: string; readonly entry: LiveEntry | null };

/** Reads a record; null for one that says nothing of anybody's environment. @throws what the registry threw */
export type ReadLiveRecord = (record: StreamRecord) => Promise<LiveRecord | null>;

export interface ReadLiveRecordParts {
  readonly topics: LiveTopics;
  readonly schemaOf: SchemaSource;
  readonly limits: Pick<LiveLimits, 'textCharactersMax'>;
}

/** A record that marks a dead letter as settled. It stands among dead letters, and is none itself. */
const SETTLED = 'settled-offset';

export function createReadLiveRecord({ topics, schemaOf, limits }: ReadLiveRecordParts): ReadLiveRecord {
  const readMessage = createRecordReader<MessageRecord>({ schemaOf, createReader: messageRecordCodec.decoderOf });
  const readRejection = createRecordReader<RejectionRecord>({ schemaOf, createReader: rejectionCodec.decoderOf });

  const entryOf = async (topic: string, record: StreamRecord): Promise<LiveEntry | null> => {
    if (topic === topics.messages) {
      const read = await readMessage(record.value);
      return read.kind === 'record' ? toMessageEntry(record, read.record, limits.textCharactersMax) : null;
    }
    const read = await readRejection(record.value);
    return read.kind === 'record' ? toRejectionEntry(record, read.record) : null;
  };
  const letterOf = async (record: StreamRecord): Promise<LiveRecord | null> => {
    if (record.headers[SETTLED] !== undefined) return null;
    const text = (name: string) => String(record.headers[name] ?? '');
    const topic = text('original-topic');
    const original = {
      ...record,
      partition: Number(text('original-partition')),
      offset: Number(text('original-offset')),
    };
    // Behind a colon the reason may quote the record: only what stands in front is shown.
    const [reason = ''] = text('reason').split(':');
    const entry = await entryOf(topic, original);
    if (entry !== null) Object.assign(entry, { fate: 'dead-lettered', reason });
    const place = toPosition(topic === topics.messages ? 'm' : 'r', original.partition, original.offset);
    return { kind: 'letter', place, reason, entry };
  };
  return async (record) => {
    if (topics.deadLetters.includes(record.topic)) return letterOf(record);
    const entry = await entryOf(record.topic, record);
    return entry === null ? null : { kind: 'entry', entry };
  };
}
