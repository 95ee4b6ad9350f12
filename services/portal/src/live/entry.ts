/** Messages and rejections as Live stores them in memory. */
import { type MessageRecord, type RejectionRecord, toUuidText, ZERO_KEY } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';

/** `accepted`: in Kafka; `stored`: in ClickHouse; `fenced`: content removed because the person was erased. */
export const OUTCOMES = ['accepted', 'stored', 'fenced', 'rejected', 'dead-lettered'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface MessageContent {
  readonly type: string;
  readonly name: string;
  readonly messageId: string;
  readonly eventTime: number;
  readonly surface: string;
  readonly test: boolean;
  readonly library: string;
  readonly libraryVersion: string;
  readonly ids: Readonly<Record<string, string>>;
  readonly pageUrl: string;
  readonly properties: string;
  readonly traits: string;
  /** True if the properties or traits are truncated. */
  readonly isCut: boolean;
  /** Hexadecimal identity keys of every person that the message is about. */
  readonly subjectKeys: readonly string[];
  /** Identity key of the anonymous id, which may belong to a shared device; empty if there is no anonymous id. */
  readonly anonymousKey: string;
}

export type RejectionContent = Pick<
  RejectionRecord,
  'code' | 'field' | 'surface' | 'library' | 'libraryVersion' | 'messageIndex'
>;

export interface LiveEntry {
  readonly environmentId: string;
  /** Unique id that consists of the record type, partition and offset. */
  readonly position: string;
  readonly partition: number;
  readonly offset: number;
  readonly receivedAt: number;
  readonly traceId: string;
  readonly bytes: number;
  readonly rejection: RejectionContent | null;
  outcome: Outcome;
  /** Why the message was not stored, without message content; empty otherwise. */
  reason: string;
  /** When the portal noticed that the message is stored, in epoch milliseconds; null until then. */
  storedAt: number | null;
  /** Null if this is a rejection or if the person was erased. */
  message: MessageContent | null;
}

const ENTRY_BYTES = 1_024;
const BYTES_PER_CHARACTER = 2;

const IDS = ['anonymousId', 'userId', 'fromId', 'toId', 'deviceId', 'sessionId'] as const;
const KINDS = ['identityType', 'fromType', 'toType'] as const;

export function toMessageEntry(source: StreamRecord, record: MessageRecord, textCharactersMax: number): LiveEntry {
  const truncate = (text: string) => text.slice(0, textCharactersMax);
  const message: MessageContent = {
    type: record.type,
    name: record.eventName,
    messageId: toUuidText(record.messageId),
    eventTime: record.eventTime,
    surface: record.surface,
    test: record.test,
    library: record.library,
    libraryVersion: record.libraryVersion,
    ids: Object.fromEntries([...IDS, ...KINDS].flatMap((name) => (record[name] === '' ? [] : [[name, record[name]]]))),
    pageUrl: truncate(record.pageUrl),
    properties: truncate(record.properties),
    traits: truncate(record.traits),
    isCut: record.properties.length > textCharactersMax || record.traits.length > textCharactersMax,
    subjectKeys: toKeys([record.identityKey, record.userKey, record.fromKey, record.toKey]),
    anonymousKey: toKeys([record.anonymousKey])[0] ?? '',
  };
  return { ...toEntry('m', source, record), bytes: bytesOf(message), outcome: 'accepted', rejection: null, message };
}

export function toRejectionEntry(source: StreamRecord, record: RejectionRecord): LiveEntry {
  const { code, field, surface, library, libraryVersion, messageIndex } = record;
  const rejection = { code, field, surface, library, libraryVersion, messageIndex };
  return { ...toEntry('r', source, record), bytes: bytesOf(rejection), outcome: 'rejected', rejection, message: null };
}

function toEntry(kind: 'm' | 'r', { partition, offset }: StreamRecord, record: MessageRecord | RejectionRecord) {
  const { environmentId, receivedAt, traceId } = record;
  const position = toPosition(kind, partition, offset);
  return { environmentId, position, partition, offset, receivedAt, traceId, reason: '', storedAt: null };
}

export function toPosition(kind: 'm' | 'r', partition: number, offset: number): string {
  return `${kind}-${partition}-${offset}`;
}

function bytesOf(content: object): number {
  return ENTRY_BYTES + BYTES_PER_CHARACTER * JSON.stringify(content).length;
}

function toKeys(keys: readonly Buffer[]): string[] {
  return keys.filter((key) => !key.equals(ZERO_KEY)).map((key) => key.toString('hex'));
}
