import { type MessageRecord, type RejectionRecord, toUuidText, ZERO_KEY } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';

/**
 * What became of a message: on the log; in ClickHouse; about somebody who is erased, so kept out; not taken; could not be
 * stored, and kept for an operator.
 */
export const OUTCOMES = ['accepted', 'stored', 'fenced', 'rejected', 'dead-lettered'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What a message says, as far as it is shown. */
export interface MessageContent {
  readonly type: string;
  readonly name: string;
  /** As clients write it. */
  readonly messageId: string;
  readonly eventTime: number;
  readonly surface: string;
  readonly test: boolean;
  readonly library: string;
  readonly libraryVersion: string;
  /** What names somebody, by field; only fields that the message has. */
  readonly ids: Readonly<Record<string, string>>;
  readonly pageUrl: string;
  readonly properties: string;
  readonly traits: string;
  /** Whether the end of properties or traits is left out here. */
  readonly isCut: boolean;
  /** Hexadecimal keys of everybody whom it is about. */
  readonly ownKeys: readonly string[];
  /** Of the anonymous id, which may be that of a device of several people; '' without one. */
  readonly anonymousKey: string;
}

export type RejectionContent = Pick<RejectionRecord, 'code' | 'field' | 'surface' | 'library' | 'libraryVersion'>;

/** One record of the log as it is held for all who look at its environment. Its fate changes, and its content may go. */
export interface LiveEntry {
  readonly environmentId: string;
  /** Names it: kind of topic, partition and offset. */
  readonly place: string;
  readonly partition: number;
  readonly offset: number;
  readonly receivedAt: number;
  readonly traceId: string;
  /** Memory that it takes, about. */
  readonly bytes: number;
  readonly rejection: RejectionContent | null;
  fate: Outcome;
  /** What kept it from being stored, without anything of its content; '' where nothing did. */
  reason: string;
  /** Null of a rejection, and of a message whose people are erased. */
  message: MessageContent | null;
  /** What lookers have had of it, by their seats; each looker reads and writes its own place. */
  readonly marks: number[];
}

/** Objects, strings and their places in lists. */
const ENTRY_BYTES = 1_024;
const BYTES_PER_CHARACTER = 2;

const IDS = ['anonymousId', 'userId', 'fromId', 'toId', 'deviceId', 'sessionId'] as const;
const KINDS = ['identityType', 'fromType', 'toType'] as const;

export function toMessageEntry(at: StreamRecord, record: MessageRecord, textCharactersMax: number): LiveEntry {
  const [properties, traits] = [record.properties, record.traits].map((text) => text.slice(0, textCharactersMax));
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
    pageUrl: record.pageUrl.slice(0, textCharactersMax),
    properties: properties!,
    traits: traits!,
    isCut: record.properties.length > textCharactersMax || record.traits.length > textCharactersMax,
    ownKeys: toKeys([record.identityKey, record.userKey, record.fromKey, record.toKey]),
    anonymousKey: toKeys([record.anonymousKey])[0] ?? '',
  };
  return { ...toEntry('m', at, record), bytes: bytesOf(message), rejection: null, message };
}

export function toRejectionEntry(at: StreamRecord, record: RejectionRecord): LiveEntry {
  const { code, field, surface, library, libraryVersion } = record;
  const rejection = { code, field, surface, library, libraryVersion };
  return { ...toEntry('r', at, record), fate: 'rejected', bytes: bytesOf(rejection), rejection, message: null };
}

function toEntry(
  kind: 'm' | 'r',
  { partition, offset }: Pick<StreamRecord, 'partition' | 'offset'>,
  { environmentId, receivedAt, traceId }: { environmentId: string; receivedAt: number; traceId: string },
) {
  const place = toPosition(kind, partition, offset);
  return {
    environmentId,
    place,
    partition,
    offset,
    receivedAt,
    traceId,
    fate: 'accepted' as Outcome,
    reason: '',
    marks: [],
  };
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
