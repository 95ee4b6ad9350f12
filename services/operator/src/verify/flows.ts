/** The topics that the event writer turns into rows, and how to find a row of each record. */
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

/** Finds the row of a record from a copy of the record at another offset. */
export interface CopyRule {
  /** A SQL tuple of columns: a prefix of the sorting key, so that few granules are read. */
  readonly columns: string;
  /** The same tuple, computed from text columns `c1`, `c2` … */
  readonly fromText: string;
}

/** A record of the log that has no row. */
export interface LoggedFact {
  /** Whether fences exclude the whole record from the table, as in the writer. */
  isFencedOut(isFenced: IsFenced): boolean;
  /** The columns of each copy rule as text, hexadecimal for arbitrary strings. */
  readonly copies: readonly (readonly string[])[];
}

export interface Flow {
  readonly topic: string;
  readonly table: string;
  /** Columns that distinguish rows at the same offset. */
  readonly identity: string;
  /** Readers see the largest version; '0' without versions. */
  readonly version: string;
  /** The table or view that readers query, with repeated rows deduplicated. */
  readonly exact: string;
  /** Tried in order. Empty if partition and offset are part of the sorting key. */
  readonly copyRules: readonly CopyRule[];
  /** Decodes values of a schema, without their frame. @throws Error */
  createDecoder(writerSchema: string): (body: Buffer) => LoggedFact;
}

const hex = (text: string) => Buffer.from(text).toString('hex');

/** The first table of a topic has a row per record. */
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
  // Without the anonymous key: in events of other persons, only that key is removed.
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
    // A changed copy has a different sorting key; finding the copy reads all ids of the environment.
    { columns: '(environment_id, message_id)', fromText: '(unhex(c1), toUUID(c2))' },
  ],
});

/** A linker that is killed before its commit publishes a decision again, for the same link fact and step. */
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

/** Link facts have no rows, but their decisions do. */
export const FLOWS: readonly Flow[] = [messages, decisions, consents, rejections];

/** Records that became dead letters, by original offset. */
export interface DeadOffsets {
  has(topic: string, partition: number, offset: number): boolean;
}

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
