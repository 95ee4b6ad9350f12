import { createHash, randomInt, randomUUID } from 'node:crypto';
import { type MessageRecord, ZERO_KEY } from '@playline/contracts';

/** JSON bytes per message: the average across web, Unity and Unreal clients. */
export const MESSAGE_BYTES = 940;

interface Message {
  type: string;
  messageId: string;
  eventTimestamp: string;
  anonymousId: string;
  userId?: string;
  identityType?: string;
  sessionId: string;
  deviceId: string;
  surface: string;
  consentLevel: string;
  eventName?: string;
  context: Record<string, string | number>;
  properties?: Record<string, unknown>;
  traits?: Record<string, unknown>;
}

const CONTEXTS: Record<string, Record<string, string | number>> = {
  web: {
    library: 'audience-web',
    libraryVersion: '2.5.0',
    userAgent:
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
    locale: 'en-US',
    timezone: 'America/New_York',
    screen: '1920x1080',
    screenDensity: 1.5,
    pageUrl: 'https://play.example.com/arena/season-4?ref=newsletter',
    pagePath: '/arena/season-4',
    pageReferrer: '',
    pageTitle: 'Arena · Season 4',
    browserLanguage: 'en-US',
  },
  unity: {
    library: 'audience-unity',
    libraryVersion: '0.9.2',
    userAgent: 'UnityPlayer/6000.0.42f1 (UnityWebRequest/1.0, libcurl/8.10.1)',
    locale: 'de-DE',
    timezone: 'Europe/Berlin',
    screen: '2560x1440',
    screenDensity: 2,
  },
  unreal: {
    library: 'audience-unreal',
    libraryVersion: '0.6.0',
    userAgent: 'Outlands/++UE5+Release-5.5-CL-40574608 Windows/10.0.26100.1.256.64bit',
    locale: 'ja-JP',
    timezone: 'Asia/Tokyo',
    screen: '3840x2160',
  },
};
const SURFACES = ['web', 'unity', 'web', 'unreal'];
const EVENT_NAMES = ['match_started', 'match_ended', 'item_bought', 'level_up', 'quest_completed', 'lobby_joined'];
const MESSAGES_PER_IDENTIFY = 20;
const PLAYERS = 5_000;

/** Creates a message with a new id. The surface, player and event are determined by `n`. */
export function createMessage(n: number, now: Date): Message {
  const player = (n * 7_919) % PLAYERS;
  const surface = SURFACES[n % SURFACES.length] ?? 'web';
  const isIdentify = n % MESSAGES_PER_IDENTIFY === 0;
  const details = {
    matchId: `m-${n % 1_000}`,
    map: 'harbour_night',
    mode: 'ranked',
    score: n % 4_000,
    accuracy: 0.413,
    party: ['a1', 'b2'],
    won: n % 2 === 0,
    note: '',
  };
  const message: Message = {
    type: isIdentify ? 'identify' : 'track',
    messageId: randomUUID(),
    eventTimestamp: now.toISOString(),
    anonymousId: `anon-${createHash('md5').update(String(player)).digest('hex')}`,
    sessionId: `session-${player}`,
    deviceId: `device-${player}`,
    surface,
    consentLevel: 'full',
    context: CONTEXTS[surface] ?? {},
    ...(isIdentify
      ? { userId: `7656119${player}`, identityType: 'steam', traits: details }
      : { eventName: EVENT_NAMES[n % EVENT_NAMES.length] ?? '', properties: details }),
  };
  details.note = 'x'.repeat(MESSAGE_BYTES - Buffer.byteLength(JSON.stringify(message)));
  return message;
}

/** Typical game properties: short names, small numbers, some nesting. */
const FIELDS: readonly [string, unknown][] = [
  ['weapon', 'longbow_of_dusk'],
  ['kills', 7],
  ['deaths', 2],
  ['damageDealt', 1843.5],
  ['position', { x: 102.25, y: -8.5, z: 0 }],
  ['teamSize', 5],
  ['clan', 'Größe & Co'],
  ['ping', 38],
  ['fps', 119.88],
  ['firstBlood', false],
  ['loot', ['coin', 'potion_small', 'key_rusty']],
  ['region', 'eu-central'],
  ['season', 4],
  ['rank', { tier: 'gold', division: 2, points: 61 }],
  ['abTest', null],
  ['build', '2026.11.3-rc1'],
];

/** Replaces the filler with as many game properties as fit, without changing the message size. */
export function fillWithFields(message: Message): void {
  const details = (message.properties ?? message.traits) as Record<string, unknown>;
  delete details.note;
  const sizeOf = () => Buffer.byteLength(JSON.stringify(message));
  for (const [name, value] of FIELDS) {
    details[name] = value;
    if (sizeOf() > MESSAGE_BYTES - NOTE_BYTES) delete details[name];
  }
  details.note = '';
  details.note = 'won by a hair in the last round '.repeat(4).slice(0, MESSAGE_BYTES - sizeOf());
}
const NOTE_BYTES = ',"note":""'.length;

/** Random numbers of the same length as those in FIELDS, so that messages compress like those of a real game. */
const randomNumbers = (): Record<string, unknown> => ({
  kills: randomInt(10),
  deaths: randomInt(10),
  damageDealt: randomInt(1_000, 10_000) + 0.5,
  position: { x: randomInt(100, 1_000) + 0.25, y: randomInt(-9, 0) + 0.5, z: 0 },
  ping: randomInt(10, 100),
  fps: randomInt(100, 120) + 0.88,
});

function varyNumbers(message: Message): void {
  const details = (message.properties ?? message.traits) as Record<string, unknown>;
  for (const [name, value] of Object.entries(randomNumbers())) if (name in details) details[name] = value;
}

export function createBody(n: number, size: number, now: Date): Buffer {
  const messages = Array.from({ length: size }, (_, index) => createMessage(n + index, now));
  return Buffer.from(JSON.stringify({ messages }));
}

const keyOf = (kind: string, id: string) => createHash('md5').update(`${kind}\0${id}`).digest();

export function toRecord(message: Message, environmentId: string): MessageRecord {
  const timestampMs = Date.parse(message.eventTimestamp);
  const anonymousKey = keyOf('anonymous', message.anonymousId);
  const userKey = message.userId === undefined ? ZERO_KEY : keyOf('steam', message.userId);
  const text = (name: string) => String(message.context[name] ?? '');
  const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value));
  return {
    environmentId,
    type: message.type,
    eventName: message.eventName ?? '',
    eventTime: timestampMs,
    receivedAt: timestampMs,
    messageId: Buffer.from(message.messageId.replaceAll('-', ''), 'hex'),
    identityKey: message.userId === undefined ? anonymousKey : userKey,
    anonymousKey,
    userKey,
    fromKey: ZERO_KEY,
    toKey: ZERO_KEY,
    fromId: '',
    fromType: '',
    toId: '',
    toType: '',
    anonymousId: message.anonymousId,
    userId: message.userId ?? '',
    identityType: message.identityType ?? '',
    deviceId: message.deviceId,
    sessionId: message.sessionId,
    surface: message.surface,
    consentLevel: message.consentLevel,
    test: false,
    library: text('library'),
    libraryVersion: text('libraryVersion'),
    userAgent: text('userAgent'),
    locale: text('locale'),
    timezone: text('timezone'),
    screen: text('screen'),
    screenDensity: typeof message.context.screenDensity === 'number' ? message.context.screenDensity : null,
    pageUrl: text('pageUrl'),
    pagePath: text('pagePath'),
    pageReferrer: text('pageReferrer'),
    pageTitle: text('pageTitle'),
    browserLanguage: text('browserLanguage'),
    properties: json(message.properties),
    traits: json(message.traits),
    traceId: createHash('md5').update(message.messageId).digest('hex'),
  };
}

/** Variants of traffic for the gateway. `realistic fields` replaces the filler with game properties. */
export const TRAFFICS = ['usual', 'one invalid message per batch', 'new ids', 'realistic fields'] as const;
/** `new messages` are messages with realistic fields from the same players, with new ids and times. */
export type Traffic = (typeof TRAFFICS)[number] | 'new messages';

export function createBodyOf(traffic: Traffic, { n, size, now }: { n: number; size: number; now: Date }): Buffer {
  if (traffic === 'usual' || traffic === 'new ids') return createBody(n, size, now);
  const messages = Array.from({ length: size }, (_, index) => createMessage(n + index, now));
  if (traffic === 'realistic fields' || traffic === 'new messages')
    for (const message of messages) fillWithFields(message);
  if (traffic === 'new messages') for (const message of messages) varyNumbers(message);
  const invalid = messages[(n / size) % size];
  if (traffic === 'one invalid message per batch' && invalid !== undefined) invalid.type = 'trak';
  return Buffer.from(JSON.stringify({ messages }));
}

const NEW_DIGITS = 12;
const MESSAGE_ID_DIGITS = /"messageId":"[0-9a-f-]{24}/g;
const ANONYMOUS_ID_DIGITS = /"anonymousId":"anon-[0-9a-f]{20}/g;
const TIMESTAMP = /"eventTimestamp":"/g;

/** @returns a function that overwrites ids and times in a request's buffer where `traffic` has new ones, and returns the buffer */
export function createRenewer(traffic: Traffic, requests: readonly Buffer[]): (index: number) => Buffer {
  const offsetsOf = (pattern: RegExp) =>
    requests.map((request) =>
      [...request.toString('latin1').matchAll(pattern)].map(({ index, 0: found }) => index + found.length),
    );
  // A random start, so that two loads do not create the same ids.
  let count = randomInt(2 ** 47);
  const newDigits = () => (count++).toString(16).padStart(NEW_DIGITS, '0');
  const renewed: [offsets: number[][], value: () => string][] = [];
  if (traffic === 'new ids' || traffic === 'new messages') renewed.push([offsetsOf(MESSAGE_ID_DIGITS), newDigits]);
  if (traffic === 'new ids') renewed.push([offsetsOf(ANONYMOUS_ID_DIGITS), newDigits]);
  if (traffic === 'new messages') renewed.push([offsetsOf(TIMESTAMP), () => new Date().toISOString()]);
  return (index) => {
    const request = requests[index] as Buffer;
    for (const [offsets, value] of renewed)
      for (const offset of offsets[index] ?? []) request.write(value(), offset, 'latin1');
    return request;
  };
}
