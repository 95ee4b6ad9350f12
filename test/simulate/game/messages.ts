import { CONTEXT_CODE_POINTS_MAX, ID_CODE_POINTS_MAX, type MessageType } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';
import { type Identity, type LinkFact, ownerOf } from './persons.ts';
import { type Device, formatTimestamp, pickPage } from './players.ts';

export type Properties = Record<string, unknown>;

const ITEMS = ['plasma_rifle', 'frontier_cape', 'battle_pass_s4', 'ore_booster', 'emote_wave'] as const;
const CURRENCIES = ['USD', 'EUR', 'JPY', 'BRL'] as const;
const BIOMES = ['dust_basin', 'ice_shelf', 'old_station', 'reactor'] as const;
const WEAPONS = ['plasma_rifle', 'coil_pistol', 'drill', 'none'] as const;

const EVENTS: Record<string, (random: Random) => Properties> = {
  session_started: (random) => ({ cold_start: random.chance(0.4), load_time_ms: random.integer(400, 9000) }),
  level_started: (random) => ({
    level: random.integer(1, 60),
    biome: random.pick(BIOMES),
    attempt: random.integer(1, 9),
  }),
  level_completed: (random) => ({
    level: random.integer(1, 60),
    biome: random.pick(BIOMES),
    duration_ms: random.integer(20_000, 900_000),
    stars: random.integer(0, 3),
    loot: Array.from({ length: random.integer(0, 4) }, () => ({
      item: random.pick(ITEMS),
      count: random.integer(1, 20),
    })),
  }),
  player_died: (random) => ({
    by: random.pick(WEAPONS),
    at: [random.next() * 900, random.next() * 900, random.next() * 40],
  }),
  purchase: (random) => ({
    order_id: random.hex(16),
    item: random.pick(ITEMS),
    price: random.integer(99, 9999) / 100,
    currency: random.pick(CURRENCIES),
    balance: { gold: random.integer(0, 100_000), gems: random.integer(0, 900) },
  }),
  matchmaking_finished: (random) => ({
    queue: random.pick(['ranked', 'casual']),
    waited_ms: random.integer(300, 90_000),
  }),
  frame_stats: (random) => ({
    fps_p50: random.integer(28, 165),
    fps_p01: random.integer(9, 60),
    memory_mb: random.integer(900, 7000),
    gpu: 'Radeon RX 7800 XT ✦ “Vulkan”',
    stalls: Array.from({ length: random.integer(0, 8) }, () => random.integer(17, 900)),
  }),
};
const EVENT_NAMES = Object.keys(EVENTS);

export function pickEvent(random: Random): { eventName: string; properties: Properties | undefined } {
  const eventName = random.pick(EVENT_NAMES);
  if (random.chance(0.05)) return { eventName, properties: undefined };
  return { eventName, properties: { ...EVENTS[eventName]!(random), build: '4.2.1-8842', match_id: random.hex(32) } };
}

export function pickTraits(random: Random): Properties {
  return {
    level: random.integer(1, 60),
    guild: random.pick(['Nomads', 'Čeští Vlci', '夜の狼', null]),
    beta: random.chance(0.2),
  };
}

export type Message = Record<string, unknown>;

export interface BuiltMessage {
  message: Message;
  owner: Identity | null;
  fact: LinkFact | null;
}

interface Base {
  readonly device: Device;
  readonly messageId: string;
  readonly timeMs: number;
  readonly random: Random;
}

function createBase(type: MessageType, { device, messageId, timeMs, random }: Base): Message {
  const browser = device.surface === 'web' || device.surface === 'pixel';
  return {
    type,
    messageId,
    eventTimestamp: formatTimestamp(timeMs, device.timeStyle, random),
    anonymousId: device.anonymousId,
    ...(device.surface === 'pixel' ? {} : { deviceId: device.deviceId }),
    sessionId: device.sessionId,
    surface: device.surface,
    consentLevel: device.user === null ? 'anonymous' : 'full',
    ...(random.chance(0.02) ? { test: true } : {}),
    context: browser ? { ...device.context, ...pickPage(random) } : { ...device.context },
  };
}

function addUser(message: Message, device: Device): Identity | null {
  const { user, userStyle } = device;
  if (user === null || userStyle === 'none') return ownerOf(null, device.anonymousId);
  message.userId = user.id;
  const isUntyped = userStyle === 'untyped' || user.kind === 'untyped';
  if (!isUntyped) message.identityType = user.kind;
  return ownerOf(isUntyped ? { kind: 'untyped', id: user.id } : user, device.anonymousId);
}

/** A track, page or screen message: never a link, even with both ids. */
export function createPlay(base: Base): BuiltMessage {
  const { device, random } = base;
  const browser = device.surface === 'web' || device.surface === 'pixel';
  const type: MessageType = random.chance(browser ? 0.5 : 0.1) ? (browser ? 'page' : 'screen') : 'track';
  const message = createBase(type, base);
  if (type === 'track') {
    const { eventName, properties } = pickEvent(random);
    message.eventName = eventName;
    if (properties !== undefined) message.properties = properties;
  } else if (type === 'screen') {
    message.properties = {
      name: random.pick(['main_menu', 'inventory', 'map']),
      previous: 'loading',
    } satisfies Properties;
  }
  return { message, owner: addUser(message, device), fact: null };
}

export function createIdentify(base: Base, user: Identity): BuiltMessage {
  const message = createBase('identify', base);
  message.userId = user.id;
  if (user.kind !== 'untyped') message.identityType = user.kind;
  message.traits = pickTraits(base.random);
  return {
    message,
    owner: ownerOf(user, base.device.anonymousId),
    fact: { link: 'identify', from: { kind: 'anonymous', id: base.device.anonymousId }, to: user },
  };
}

/** An alias. Some clients send it without an anonymous id: it has no owner. */
export function createAlias(base: Base, from: Identity, to: Identity): BuiltMessage {
  const message = createBase('alias', base);
  message.fromId = from.id;
  if (from.kind !== 'untyped') message.fromType = from.kind;
  message.toId = to.id;
  if (to.kind !== 'untyped') message.toType = to.kind;
  const fact: LinkFact = { link: 'alias', from, to };
  if (base.random.chance(0.5)) return { message, owner: { kind: 'anonymous', id: base.device.anonymousId }, fact };
  delete message.anonymousId;
  return { message, owner: null, fact };
}

/** An odd message that must be accepted (contract, "Rules of a message"). */
export interface Oddity {
  readonly name: string;
  /** Changes the message, but neither its owner nor its link. */
  change(message: Message, random: Random): void;
}

const set = (name: string, membersOf: (message: Message) => Message): Oddity => ({
  name,
  change: (message) => void Object.assign(message, membersOf(message)),
});
const setContext = (name: string, members: Message): Oddity => ({
  name,
  change: ({ context }) => void Object.assign(context as Message, members),
});

/** An emoji is one code point and two UTF-16 units; a limit must count code points. */
const emoji = (codePoints: number) => '🎮'.repeat(codePoints);

export const ODDITIES: readonly Oddity[] = [
  { name: 'no context', change: (message) => void delete message.context },
  set('null in optional members', () => ({ deviceId: null, test: null })),
  setContext('null in the context', { locale: null, screen: null }),
  set('blank optional ids', () => ({ deviceId: '  ', sessionId: '' })),
  setContext('empty context strings', { pageTitle: '', pageReferrer: '' }),
  set('unknown members', () => ({ sentBy: 'beta', extra: { deep: [1, { deeper: null }] } })),
  set('upper-case message id', ({ messageId }) => ({ messageId: String(messageId).toUpperCase() })),
  set('longest session id', () => ({ sessionId: emoji(ID_CODE_POINTS_MAX) })),
  setContext('longest user agent', { userAgent: emoji(CONTEXT_CODE_POINTS_MAX.userAgent) }),
  setContext('longest page address', { pageUrl: 'https://a.example/'.padEnd(CONTEXT_CODE_POINTS_MAX.pageUrl, 'é') }),
  set('lower-case t and z', ({ eventTimestamp }) => ({ eventTimestamp: String(eventTimestamp).toLowerCase() })),
  set('nine digits of a second', ({ eventTimestamp }) => ({
    eventTimestamp: String(eventTimestamp).replace(/(\.\d+)?(Z|[+-]\d\d:\d\d)$/, '.123456789$2'),
  })),
  set('consent not set', () => ({ consentLevel: 'not_set' })),
  { name: 'no surface', change: (message) => void delete message.surface },
  set('awkward text', () => ({
    properties: { text: '\u0000\u2028"\\\t</script> ﷽ \ud83c\udfae', __proto_: 1, 'a.b': '' },
  })),
];
