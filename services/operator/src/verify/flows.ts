/** Defines the topics that the event writer stores in tables, and how to find the row of a record. */
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

/** Finds the row of a copy of a record at another offset. */
export interface CopyRule {
  /** SQL tuple of columns that form a prefix of the sorting key, so that few granules are read. */
  readonly columns: string;
  /** The same tuple, calculated from the string columns `c1`, `c2` and so on. */
  readonly fromText: string;
}

/** A log record without a row. */
export interface LoggedFact {
  /** Whether fences exclude the whole record from the table. */
  isFencedOut(isFenced: IsFenced): boolean;
  /** The columns of each copy rule as strings; arbitrary strings are hexadecimal. */
  readonly copies: readonly (readonly string[])[];
}

export interface Flow {
  readonly topic: string;
  readonly table: string;
  /** Columns that distinguish rows of different records at the same offset. */
  readonly identity: string;
  /** SQL expression; queries return only the row with the highest value. '0' if the table has no versions. */
  readonly version: string;
  /** The table or view that returns deduplicated rows. */
  readonly exact: string;
  /** Rules to try, in order. Empty if partition and offset are part of the sorting key. */
  readonly copyRules: readonly CopyRule[];
  /** Creates a decoder for values without their frame. @throws Error */
  createDecoder(writerSchema: string): (body: Buffer) => LoggedFact;
}

const hex = (text: string) => Buffer.from(text).toString('hex');

/** Checks the first table of a topic, which contains one row per record. */
function isFencedOutOf<R>({ tables }: RecordRows<R>, record: R, isFenced: IsFenced): boolean {
  return tables[0]?.withoutFenced(record, isFenced) === null;
}

function createFlow<R>(
  codec: RecordCodec<R>,
  toFact: (record: R) => LoggedFact,
  flow: Omit<Flow, 'createDecoder'>,
): Flow {
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
  // Omits the anonymous key, because an erasure removes only this key from events of other persons.
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

const messages = createFlow(messageRecordCodec, toMessageFact, {
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
    // A copy with changed fields has a different sorting key. This rule reads all message ids of the environment.
    { columns: '(environment_id, message_id)', fromText: '(unhex(c1), toUUID(c2))' },
  ],
});

/** A linker that is killed before its commit republishes decisions for the same link facts and steps. */
const toDecisionFact = (record: IdentityDecisionRecord): LoggedFact => {
  const { environmentId, generation, partition, offset, step } = record;
  return {
    isFencedOut: (isFenced) => isFencedOutOf(decisionRows, record, isFenced),
    copies: [[hex(environmentId), ...[generation, partition, offset, step].map(String)]],
  };
};

const decisions = createFlow(identityDecisionCodec, toDecisionFact, {
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
});

const withoutCopies =
  <R>(rows: RecordRows<R>) =>
  (record: R): LoggedFact => ({ isFencedOut: (isFenced) => isFencedOutOf(rows, record, isFenced), copies: [] });

const consents = createFlow(consentCodec, withoutCopies(consentRows), {
  topic: TOPICS.consents.name,
  table: 'consent_log',
  identity: '(identity_key, received_at)',
  version: '0',
  exact: 'consent_log FINAL',
  copyRules: [],
});

const rejections = createFlow(rejectionCodec, withoutCopies(rejectionRows), {
  topic: TOPICS.rejections.name,
  table: 'message_rejections',
  version: '0',
  exact: 'message_rejections FINAL',
  identity: '(code, field, trace_id)',
  copyRules: [],
});

/** Link facts are not included, because only their decisions are stored. */
export const FLOWS: readonly Flow[] = [messages, decisions, consents, rejections];

/** The original offsets of dead letters. */
export interface DeadOffsets {
  has(topic: string, partition: number, offset: number): boolean;
}

export async function readDeadOffsets(log: LogReader, topics: readonly string[]): Promise<DeadOffsets> {
  const offsets = new Map<string, Set<number>>();
  for (const topic of topics)
    for await (const { original } of readDeadLetters(log, topic)) {
      const key = `${original.topic}/${original.partition}`;
      const inPartition = offsets.get(key) ?? new Set();
      offsets.set(key, inPartition.add(original.offset));
    }
  return { has: (topic, partition, offset) => offsets.get(`${topic}/${partition}`)?.has(offset) ?? false };
}
