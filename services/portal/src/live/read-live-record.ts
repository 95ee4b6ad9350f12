/** Decodes Kafka records for Live. */
import {
  createRecordReader,
  type MessageRecord,
  messageRecordCodec,
  type RejectionRecord,
  rejectionCodec,
  type SchemaSource,
} from '@playline/contracts';
import { SETTLED_OFFSET, type StreamRecord } from '@playline/stream';
import { type LiveEntry, toMessageEntry, toPosition, toRejectionEntry } from './entry.ts';
import type { LiveLimits } from './limits.ts';

export interface LiveTopics {
  readonly messages: string;
  readonly rejections: string;
  readonly deadLetters: readonly string[];
}

export type LiveRecord =
  | { readonly kind: 'entry'; readonly entry: LiveEntry }
  /** A record that could not be stored. `entry` is used only if the buffer does not contain the original entry. */
  | {
      readonly kind: 'dead letter';
      readonly position: string;
      readonly reason: string;
      readonly entry: LiveEntry | null;
    };

/** Returns null if the record is neither a message nor a rejection. @throws any schema registry error */
export type ReadLiveRecord = (record: StreamRecord) => Promise<LiveRecord | null>;

export interface ReadLiveRecordParts {
  readonly topics: LiveTopics;
  readonly schemaOf: SchemaSource;
  readonly limits: Pick<LiveLimits, 'textCharactersMax'>;
}

export function createReadLiveRecord({ topics, schemaOf, limits }: ReadLiveRecordParts): ReadLiveRecord {
  const readMessage = createRecordReader<MessageRecord>({ schemaOf, createReader: messageRecordCodec.decoderOf });
  const readRejection = createRecordReader<RejectionRecord>({ schemaOf, createReader: rejectionCodec.decoderOf });

  async function entryOf(topic: string, record: StreamRecord): Promise<LiveEntry | null> {
    if (topic === topics.messages) {
      const read = await readMessage(record.value);
      return read.kind === 'record' ? toMessageEntry(record, read.record, limits.textCharactersMax) : null;
    }
    const read = await readRejection(record.value);
    return read.kind === 'record' ? toRejectionEntry(record, read.record) : null;
  }

  async function deadLetterOf(record: StreamRecord): Promise<LiveRecord | null> {
    if (record.headers[SETTLED_OFFSET] !== undefined) return null;
    const text = (name: string) => String(record.headers[name] ?? '');
    const topic = text('original-topic');
    const [partition, offset] = [Number(text('original-partition')), Number(text('original-offset'))];
    // The text after the first colon may quote the record.
    const [reason = ''] = text('reason').split(':');
    const entry = await entryOf(topic, { ...record, partition, offset });
    if (entry !== null) Object.assign(entry, { outcome: 'dead-lettered', reason });
    const position = toPosition(topic === topics.messages ? 'm' : 'r', partition, offset);
    return { kind: 'dead letter', position, reason, entry };
  }

  return async (record) => {
    if (topics.deadLetters.includes(record.topic)) return deadLetterOf(record);
    const entry = await entryOf(record.topic, record);
    return entry === null ? null : { kind: 'entry', entry };
  };
}
