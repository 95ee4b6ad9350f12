/** Publishes the last 30 days of the demo game to the topics that gateways write. */
import {
  type ConsentRecord,
  consentCodec,
  frameRecord,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
  type MessageRecord,
  messageRecordCodec,
  type RejectionRecord,
  rejectionCodec,
  TOPICS,
  ZERO_KEY,
} from '@playline/contracts';
import { createDay, DAY_MS, type DemoEntry, type DemoMessage, timeOf } from './game.ts';
import { toUuid } from './random.ts';

const DAYS = 30;
/** Records per request to the producer, to bound memory. */
const BATCH_RECORDS = 2_000;
/** Time between an event and its receipt. */
const NETWORK_MS = 400;
const CONCURRENT_CONSENTS = 100;

const CODECS = {
  messages: messageRecordCodec,
  identityLinks: identityLinkCodec,
  rejections: rejectionCodec,
  consents: consentCodec,
} as const;
type DemoTopic = keyof typeof CODECS;
const TOPIC_KEYS = ['messages', 'identityLinks', 'rejections', 'consents'] as const satisfies readonly DemoTopic[];

/** Topics for which the producer must be opened, without the prefix. */
export const DEMO_TOPICS = TOPIC_KEYS.map((key) => TOPICS[key].name);

export interface DemoRecord {
  readonly topic: string;
  readonly key: Buffer | null;
  readonly value: Buffer;
}

interface ConsentPosition {
  readonly partition: number;
  readonly offset: number;
  readonly loggedAtMs: number;
}

export interface DemoGameParts {
  readonly environmentId: string;
  /** End of the loaded period in epoch milliseconds. */
  readonly endAtMs: number;
  readonly topicPrefix: string;
  readonly keyOf: (environmentId: string, kind: IdentityKind, id: string) => Buffer;
  /** Returns the schema id of a topic, whose name includes the prefix. */
  readonly schemaIdOf: (topic: string, schema: string) => Promise<number>;
  readonly producer: {
    /** Calls `done` once all in-sync replicas have stored the records. */
    send(records: readonly DemoRecord[], done: (fault: Error | null) => void): void;
    sendForOffset(record: DemoRecord): Promise<{ partition: number; offset: number; loggedAtMs: number | null }>;
  };
  /** Stores a consent after it was logged. */
  readonly consents: {
    apply(consent: ConsentRecord & { readonly position: ConsentPosition }): Promise<unknown>;
  };
  readonly onProgress?: (load: DemoLoad) => void;
}

export interface DemoLoad {
  readonly messages: number;
  readonly rejected: number;
  readonly links: number;
  readonly consents: number;
  /** Number of days that are loaded. */
  readonly days: number;
}

/**
 * Loads 30 days that end at `endAtMs`. Messages have ids that depend only on environment and day, so the views show each
 * message once, even if the command is repeated. Consents are sent again.
 */
export async function loadDemoGame(parts: DemoGameParts): Promise<DemoLoad> {
  const frame = await createFramer(parts);
  const total = { messages: 0, rejected: 0, links: 0, consents: 0, days: 0 };
  const today = Math.floor(parts.endAtMs / DAY_MS);
  for (let day = today - DAYS + 1; day <= today; day++) {
    const entries = createDay(day).filter((entry) => timeOf(entry) + NETWORK_MS <= parts.endAtMs);
    const records = entries.flatMap((entry) => toRecords(parts, frame, entry));
    for (let at = 0; at < records.length; at += BATCH_RECORDS)
      await publish(parts, records.slice(at, at + BATCH_RECORDS));
    const consents = entries.filter((entry) => entry.kind === 'consent');
    for (let at = 0; at < consents.length; at += CONCURRENT_CONSENTS)
      await Promise.all(consents.slice(at, at + CONCURRENT_CONSENTS).map((entry) => putConsent(parts, frame, entry)));
    total.consents += consents.length;
    total.messages += countKind(entries, 'message');
    total.rejected += countKind(entries, 'rejection');
    total.links += records.length - countKind(entries, 'message') - countKind(entries, 'rejection');
    total.days++;
    parts.onProgress?.({ ...total });
  }
  return total;
}

const publish = ({ producer }: DemoGameParts, records: readonly DemoRecord[]) =>
  new Promise<void>((resolve, reject) => {
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });

const countKind = (entries: readonly DemoEntry[], kind: DemoEntry['kind']) =>
  entries.filter((entry) => entry.kind === kind).length;

/** Publishes a consent and then stores it, as a gateway does. */
async function putConsent(
  { environmentId, keyOf, producer, consents }: DemoGameParts,
  frame: Frame,
  { anonymousId, status, atMs }: Extract<DemoEntry, { kind: 'consent' }>,
): Promise<void> {
  const identityKey = keyOf(environmentId, 'anonymous', anonymousId);
  const traceId = traceIdOf(`consent of ${anonymousId}`);
  const consent: ConsentRecord = {
    environmentId,
    identityKey,
    status,
    source: 'first start',
    receivedAt: atMs + NETWORK_MS,
    traceId,
  };
  const key = Buffer.concat([Buffer.from(environmentId), identityKey]);
  const record = frame('consents', key, consentCodec.encode(consent));
  const { loggedAtMs, ...stored } = await producer.sendForOffset(record);
  await consents.apply({ ...consent, position: { ...stored, loggedAtMs: loggedAtMs ?? consent.receivedAt } });
}

const traceIdOf = (name: string) => toUuid(`trace of ${name}`).replaceAll('-', '');

type Frame = (name: DemoTopic, key: Buffer, body: Buffer) => DemoRecord;

async function createFramer({ topicPrefix, schemaIdOf }: DemoGameParts): Promise<Frame> {
  const schemaIds = new Map<DemoTopic, number>();
  for (const name of TOPIC_KEYS)
    schemaIds.set(name, await schemaIdOf(topicPrefix + TOPICS[name].name, CODECS[name].schema));
  return (name, key, body) => ({
    topic: topicPrefix + TOPICS[name].name,
    key,
    value: frameRecord(schemaIds.get(name)!, body),
  });
}

/** Returns the records that a gateway would publish. */
function toRecords(parts: DemoGameParts, frame: Frame, entry: DemoEntry): DemoRecord[] {
  if (entry.kind === 'consent') return [];
  const { message } = entry;
  const environmentKey = Buffer.from(parts.environmentId);
  if (entry.kind === 'rejection')
    return [frame('rejections', environmentKey, rejectionCodec.encode(toRejection(parts.environmentId, message)))];
  const record = toMessageRecord(parts, message);
  const key = Buffer.concat([environmentKey, record.identityKey]);
  const records = [frame('messages', key, messageRecordCodec.encode(record))];
  if (message.type === 'identify')
    records.push(frame('identityLinks', environmentKey, identityLinkCodec.encode(toLink(record))));
  return records;
}

function toRejection(environmentId: string, { surface, library, libraryVersion, atMs, messageId }: DemoMessage) {
  const rejection: RejectionRecord = {
    environmentId,
    code: 'MISSING_REQUIRED_FIELD',
    field: 'eventName',
    surface,
    library,
    libraryVersion,
    receivedAt: atMs + NETWORK_MS,
    traceId: traceIdOf(messageId),
    messageIndex: 0,
  };
  return rejection;
}

/** Derived from the environment too, so that two environments do not share message ids. */
const idOf = (environmentId: string, messageId: string) =>
  Buffer.from(toUuid(`${environmentId} ${messageId}`).replaceAll('-', ''), 'hex');

function toMessageRecord({ environmentId, keyOf }: DemoGameParts, message: DemoMessage): MessageRecord {
  const { anonymousId, userId, identityType, page, properties, traits } = message;
  const anonymousKey = keyOf(environmentId, 'anonymous', anonymousId);
  const userKey = userId === '' ? ZERO_KEY : keyOf(environmentId, identityType as IdentityKind, userId);
  return {
    environmentId,
    type: message.type,
    eventName: message.eventName,
    eventTime: message.atMs,
    receivedAt: message.atMs + NETWORK_MS,
    messageId: idOf(environmentId, message.messageId),
    identityKey: userId === '' ? anonymousKey : userKey,
    anonymousKey,
    userKey,
    fromKey: ZERO_KEY,
    toKey: ZERO_KEY,
    anonymousId,
    userId,
    identityType,
    fromId: '',
    fromType: '',
    toId: '',
    toType: '',
    deviceId: '',
    sessionId: message.sessionId,
    surface: message.surface,
    consentLevel: message.consent,
    test: false,
    library: message.library,
    libraryVersion: message.libraryVersion,
    // Messages with this user agent get the delay 0 (infra/clickhouse/schema/02-events.sql).
    userAgent: 'playline-demo',
    locale: message.locale,
    timezone: message.timezone,
    screen: '',
    screenDensity: null,
    pageUrl: page?.url ?? '',
    pagePath: page?.path ?? '',
    pageReferrer: page?.referrer ?? '',
    pageTitle: '',
    browserLanguage: '',
    properties: properties === null ? '' : JSON.stringify(properties),
    traits: traits === null ? '' : JSON.stringify(traits),
    traceId: traceIdOf(message.messageId),
  };
}

/** The link fact of an identify message: contract, "identify". */
function toLink(record: MessageRecord): IdentityLinkRecord {
  const { environmentId, messageId, anonymousId, userId, identityType, eventTime, receivedAt, traceId } = record;
  return {
    environmentId,
    messageId,
    link: 'identify',
    fromKind: 'anonymous',
    fromId: anonymousId,
    toKind: identityType as IdentityKind,
    toId: userId,
    eventTime,
    receivedAt,
    traceId,
    unlink: [],
  };
}
