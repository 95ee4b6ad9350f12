import {
  consentCodec,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  type MessageRecord,
  messageRecordCodec,
  type RecordCodec,
  rejectionCodec,
  TOPICS,
  toUuidText,
} from '@playline/contracts';
import { consentRows, decisionRows, type IsFenced, type RecordRows, rejectionRows } from '@playline/events';
import type { LogReader } from '@playline/stream';
import { readDeadLetters } from '../dead-letters/dead-letters.ts';

/** Another way to find the row of a record, from a copy of the record at another offset. */
export interface CopyRule {
  /** Columns that find the row, as a SQL tuple; the first ones of the sorting key, so that few granules are read. */
  readonly columns: string;
  /** The same tuple made of the columns of a list: `c1`, `c2` …, all text. */
  readonly fromText: string;
}

/** What is known of one record of the log that has no row of its own. */
export interface LoggedFact {
  /** Whether the fences keep all of it out of the table, by the same rule as in the writer. */
  isFencedOut(isFenced: IsFenced): boolean;
  /** For each copy rule its columns as text, in hexadecimal where they may contain anything. */
  readonly copies: readonly (readonly string[])[];
}

/** A topic whose every record becomes a row of a table. */
export interface Flow {
  readonly topic: string;
  readonly table: string;
  /** What distinguishes rows at the same offset. */
  readonly identity: string;
  /** Readers see the largest version of a row that has several sorting keys; '0' without versions. */
  readonly version: string;
  /** What readers query: the table, with repeated rows folded. */
  readonly exact: string;
  /** Tried in turn for a record without a row. Empty where the place in the log is part of the sorting key. */
  readonly copyRules: readonly CopyRule[];
  /** Creates the reader of values (without their frame) that were written with a schema. @throws Error */
  createDecoder(writerSchema: string): (body: Buffer) => LoggedFact;
}

const hex = (text: string) => Buffer.from(text).toString('hex');

/** As in the writer: by the first table, which has a row for every record. */
function isFencedOutOf<R>({ tables }: RecordRows<R>, record: R, isFenced: IsFenced): boolean {
  return tables[0]?.withoutFenced(record, isFenced) === null;
}

function createFlow<R>(options: {
  flow: Omit<Flow, 'createDecoder'>;
  codec: RecordCodec<R>;
  toFact: (record: R) => LoggedFact;
}): Flow {
  const { flow, codec, toFact } = options;
  return {
    ...flow,
    createDecoder(writerSchema) {
      const decode = codec.decoderOf(writerSchema);
      return (body) => toFact(decode(body));
    },
  };
}

function toMessageFact(record: MessageRecord): LoggedFact {
  const { environmentId, eventName, eventTime, receivedAt, identityKey, userKey, fromKey, toKey } = record;
  // Without the anonymous key: in another person's event the fence removes only that key.
  const keys = [identityKey, userKey, fromKey, toKey];
  const [environment, messageId] = [hex(environmentId), toUuidText(record.messageId)];
  const day = new Date(eventTime).toISOString().slice(0, 10);
  return {
    isFencedOut: (isFenced) =>
      keys.some((key) => isFenced({ environmentId, key, eventTimeMs: eventTime, receivedAtMs: receivedAt })),
    copies: [
      [environment, hex(eventName), day, identityKey.toString('hex'), messageId],
      [environment, messageId],
    ],
  };
}

const messages = createFlow({
  codec: messageRecordCodec,
  toFact: toMessageFact,
  flow: {
    topic: TOPICS.messages.name,
    table: 'events',
    identity: 'message_id',
    version: 'version',
    exact: 'events_exact',
    copyRules: [
      {
        columns: '(environment_id, event_name, toDate(event_time), identity_key, message_id)',
        fromText: '(unhex(c1), unhex(c2), toDate(c3), toFixedString(unhex(c4), 16), toUUID(c5))',
      },
      // A changed copy has another sorting key; finding it reads all ids of the environment.
      { columns: '(environment_id, message_id)', fromText: '(unhex(c1), toUUID(c2))' },
    ],
  },
});

/** A linker that dies before its commit publishes a decision again, with the same place among the link facts. */
const toDecisionFact = (record: IdentityDecisionRecord): LoggedFact => {
  const { environmentId, generation, partition, offset, step } = record;
  return {
    isFencedOut: (isFenced) => isFencedOutOf(decisionRows, record, isFenced),
    copies: [[hex(environmentId), ...[generation, partition, offset, step].map(String)]],
  };
};

const decisions = createFlow({
  codec: identityDecisionCodec,
  toFact: toDecisionFact,
  flow: {
    topic: TOPICS.identityDecisions.name,
    table: 'identity_links',
    version: '0',
    exact: 'identity_links FINAL',
    identity: '(environment_id, link_generation, link_partition, link_offset, step)',
    copyRules: [
      {
        columns: '(environment_id, link_generation, link_partition, link_offset, step)',
        fromText: '(unhex(c1), toUInt8(c2), toUInt16(c3), toUInt64(c4), toUInt8(c5))',
      },
    ],
  },
});

const consents = createFlow({
  codec: consentCodec,
  toFact: (record) => ({
    isFencedOut: (isFenced) => isFencedOutOf(consentRows, record, isFenced),
    copies: [],
  }),
  flow: {
    topic: TOPICS.consents.name,
    table: 'consent_log',
    identity: '(identity_key, received_at)',
    version: '0',
    exact: 'consent_log FINAL',
    copyRules: [],
  },
});

const rejections = createFlow({
  codec: rejectionCodec,
  toFact: (record) => ({
    isFencedOut: (isFenced) => isFencedOutOf(rejectionRows, record, isFenced),
    copies: [],
  }),
  flow: {
    topic: TOPICS.rejections.name,
    table: 'message_rejections',
    version: '0',
    exact: 'message_rejections FINAL',
    identity: '(code, field, trace_id)',
    copyRules: [],
  },
});

/**
 * Every topic that the event writer turns into rows. Link facts have none: the result of one, also after it was parked
 * during an erasure, is a decision.
 */
export const FLOWS: readonly Flow[] = [messages, decisions, consents, rejections];

/** Which records of the log became dead letters. */
export interface DeadOffsets {
  has(topic: string, partition: number, offset: number): boolean;
}

/** Reads the original offsets of the dead letters of topics. Only a number for each is kept in memory. */
export async function readDeadOffsets(log: LogReader, topics: readonly string[]): Promise<DeadOffsets> {
  const offsets = new Map<string, Set<number>>();
  for (const topic of topics)
    for await (const { original } of readDeadLetters(log, topic)) {
      const key = `${original.topic}/${original.partition}`;
      const known = offsets.get(key) ?? new Set();
      offsets.set(key, known.add(original.offset));
    }
  return { has: (topic, partition, offset) => offsets.get(`${topic}/${partition}`)?.has(offset) ?? false };
}
