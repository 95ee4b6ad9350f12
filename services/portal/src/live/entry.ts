/** Records of the log as Live holds them. */
import { type MessageRecord, type RejectionRecord, toUuidText, ZERO_KEY } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';

/** On the log; in ClickHouse; withheld for an erased person; refused; could not be stored. */
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
  /** Ids of people by field, and their kinds; only fields that the message has. */
  readonly ids: Readonly<Record<string, string>>;
  readonly pageUrl: string;
  readonly properties: string;
  readonly traits: string;
  /** True when properties or traits are truncated. */
  readonly isCut: boolean;
  /** Hexadecimal keys of all people whom the message is about. */
  readonly ownKeys: readonly string[];
  /** Key of the anonymous id, which may belong to a shared device; '' without one. */
  readonly anonymousKey: string;
}

export type RejectionContent = Pick<RejectionRecord, 'code' | 'field' | 'surface' | 'library' | 'libraryVersion'>;

/** Shared by all subscribers of its environment. */
export interface LiveEntry {
  readonly environmentId: string;
  /** Kind of topic, partition and offset: its id. */
  readonly position: string;
  readonly partition: number;
  readonly offset: number;
  readonly receivedAt: number;
  readonly traceId: string;
  /** Estimated memory. */
  readonly bytes: number;
  readonly rejection: RejectionContent | null;
  outcome: Outcome;
  /** Why it was not stored, without any of its content; '' otherwise. */
  reason: string;
  /** Null for a rejection, and for a message of an erased person. */
  message: MessageContent | null;
  /** What each subscriber has received, by its slot. */
  readonly marks: number[];
}

/** Objects, strings and list elements of an entry. */
const ENTRY_BYTES = 1_024;
const BYTES_PER_CHARACTER = 2;

const IDS = ['anonymousId', 'userId', 'fromId', 'toId', 'deviceId', 'sessionId'] as const;
const KINDS = ['identityType', 'fromType', 'toType'] as const;

export function toMessageEntry(at: StreamRecord, record: MessageRecord, textCharactersMax: number): LiveEntry {
  const cut = (text: string) => text.slice(0, textCharactersMax);
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
    pageUrl: cut(record.pageUrl),
    properties: cut(record.properties),
    traits: cut(record.traits),
    isCut: record.properties.length > textCharactersMax || record.traits.length > textCharactersMax,
    ownKeys: toKeys([record.identityKey, record.userKey, record.fromKey, record.toKey]),
    anonymousKey: toKeys([record.anonymousKey])[0] ?? '',
  };
  return { ...toEntry('m', at, record), bytes: bytesOf(message), outcome: 'accepted', rejection: null, message };
}

export function toRejectionEntry(at: StreamRecord, record: RejectionRecord): LiveEntry {
  const { code, field, surface, library, libraryVersion } = record;
  const rejection = { code, field, surface, library, libraryVersion };
  return { ...toEntry('r', at, record), bytes: bytesOf(rejection), outcome: 'rejected', rejection, message: null };
}

function toEntry(kind: 'm' | 'r', { partition, offset }: StreamRecord, record: MessageRecord | RejectionRecord) {
  const { environmentId, receivedAt, traceId } = record;
  const position = toPosition(kind, partition, offset);
  return { environmentId, position, partition, offset, receivedAt, traceId, reason: '', marks: [] };
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
