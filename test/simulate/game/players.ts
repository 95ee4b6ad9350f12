import {
  CONTEXT_CODE_POINTS_MAX,
  ID_CODE_POINTS_MAX,
  type IdentityType,
  type MessageType,
  type Surface,
} from '@playline/contracts';
import { createDeck, type Random } from '@playline/testkit/random';
import type { Run } from '../run.ts';
import { type Identity, type LinkFact, ownerOf } from './persons.ts';

interface TimeStyle {
  readonly digits: number;
  readonly offsetMinutes: number | 'Z';
}

/** Formats a time according to RFC 3339, with random digits beyond milliseconds. */
function formatTimestamp(timeMs: number, style: TimeStyle, random: Random): string {
  const shift = style.offsetMinutes === 'Z' ? 0 : style.offsetMinutes;
  const iso = new Date(timeMs + shift * 60_000).toISOString();
  const seconds = iso.slice(0, 19);
  const extraDigits = Array.from({ length: 6 }, () => random.integer(0, 9)).join('');
  const fraction = `${iso.slice(20, 23)}${extraDigits}`.slice(0, style.digits);
  return `${seconds}${style.digits === 0 ? '' : `.${fraction}`}${formatOffset(style.offsetMinutes)}`;
}

function formatOffset(offset: TimeStyle['offsetMinutes']): string {
  if (offset === 'Z') return 'Z';
  const minutes = Math.abs(offset);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const HOUR_MS = 60 * 60 * 1000;
/** One day less than the maximum age, so that a batch is still accepted after minutes of retries. */
const LATE_MAX_MS = 29 * DAY_MS;
const AHEAD_MAX_MS = 23 * HOUR_MS;

/** Returns the age of a batch's events. Some clients were offline for weeks, and some clocks are ahead. */
export function pickDelayMs(random: Random): number {
  const draw = random.next();
  if (draw < 0.88) return random.integer(0, 30_000);
  if (draw < 0.95) return random.integer(HOUR_MS, DAY_MS);
  if (draw < 0.99) return random.integer(DAY_MS, LATE_MAX_MS);
  return -random.integer(HOUR_MS, AHEAD_MAX_MS);
}

type Context = Record<string, string | number | null>;

const LOCALES = [
  { locale: 'en-US', timezone: 'America/New_York', offsetMinutes: -300 },
  { locale: 'de-DE', timezone: 'Europe/Berlin', offsetMinutes: 60 },
  { locale: 'pt-BR', timezone: 'America/Sao_Paulo', offsetMinutes: -180 },
  { locale: 'ja-JP', timezone: 'Asia/Tokyo', offsetMinutes: 540 },
  { locale: 'hi-IN', timezone: 'Asia/Kolkata', offsetMinutes: 330 },
  { locale: 'ko-KR', timezone: 'Asia/Seoul', offsetMinutes: 540 },
] as const;

const BROWSERS = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
  'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
] as const;

const ENGINES = {
  unity: ['UnityPlayer/6000.0.42f1 (UnityWebRequest/1.0, libcurl/8.10.1)', 'UnityPlayer/2022.3.60f1 (Android 15)'],
  unreal: ['Outlands/++UE5+Release-5.5-CL-40574608 Windows/10.0.26100.1.256.64bit', 'Outlands/++UE5+Release-5.4 Linux'],
} as const;

const LIBRARIES: Record<Surface, { library: string; versions: readonly string[] }> = {
  web: { library: 'audience-web', versions: ['2.4.1', '2.5.0'] },
  pixel: { library: 'audience-pixel', versions: ['1.9.3'] },
  unity: { library: 'audience-unity', versions: ['0.8.0', '0.9.2'] },
  unreal: { library: 'audience-unreal', versions: ['0.5.1', '0.6.0'] },
};

const SCREENS = ['1920x1080', '2560x1440', '3840x2160', '390x844', '1280x800'] as const;

function createContext(surface: Surface, random: Random): { context: Context; timeStyle: TimeStyle } {
  const region = random.pick(LOCALES);
  const { library, versions } = LIBRARIES[surface];
  const context: Context = {
    library,
    libraryVersion: random.pick(versions),
    userAgent: surface === 'unity' || surface === 'unreal' ? random.pick(ENGINES[surface]) : random.pick(BROWSERS),
    locale: region.locale,
    timezone: region.timezone,
    screen: random.pick(SCREENS),
  };
  if (surface !== 'pixel') context.screenDensity = random.pick([1, 1.5, 2, 2.625, 3]);
  if (surface === 'web' || surface === 'pixel') context.browserLanguage = region.locale;
  return { context, timeStyle: pickTimeStyle(surface, region.offsetMinutes, random) };
}

/** Browsers use `toISOString`; .NET's round-trip format has 7 digits and may use the local offset. */
function pickTimeStyle(surface: Surface, offsetMinutes: number, random: Random): TimeStyle {
  if (surface === 'unity') return { digits: 7, offsetMinutes: random.chance(0.5) ? 'Z' : offsetMinutes };
  if (surface === 'unreal')
    return { digits: random.pick([0, 3]), offsetMinutes: random.chance(0.8) ? 'Z' : offsetMinutes };
  return { digits: 3, offsetMinutes: 'Z' };
}

const PAGES = [
  { path: '/', title: 'Outlands: the frontier is open' },
  { path: '/play', title: 'Play now' },
  { path: '/store/skins', title: 'Store: skins' },
  { path: '/leaderboard', title: 'Leaderboard' },
  { path: '/news/season-4-patch-notes', title: 'Season 4 patch notes' },
] as const;
const REFERRERS = ['', 'https://www.example.com/search?q=outlands+game', 'https://social.example/outlands'] as const;

function pickPage(random: Random): Context {
  const page = random.pick(PAGES);
  const campaign = random.chance(0.3) ? `?utm_source=newsletter&utm_campaign=season-4&click=${random.hex(24)}` : '';
  return {
    pageUrl: `https://outlands.example${page.path}${campaign}`,
    pagePath: page.path,
    pageReferrer: random.pick(REFERRERS),
    pageTitle: random.chance(0.9) ? page.title : '',
  };
}

type UserStyle = 'none' | 'typed' | 'untyped';

export interface Device {
  readonly surface: Surface;
  readonly deviceId: string;
  readonly context: Context;
  readonly timeStyle: TimeStyle;
  readonly userStyle: UserStyle;
  anonymousId: string;
  sessionId: string;
  user: Identity | null;
}

export type Scene =
  | { readonly action: 'login'; readonly device: number; readonly user: number }
  | { readonly action: 'identify'; readonly device: number; readonly user: Identity }
  | { readonly action: 'logout'; readonly device: number }
  | { readonly action: 'reinstall'; readonly device: number }
  | { readonly action: 'alias'; readonly from: Identity; readonly to: Identity };

// People and devices whose identities may be linked. Households share no identities. A household's batches are sent in
// sequence, so that link facts are published in story order.
export interface Household {
  readonly index: number;
  readonly recipe: string;
  readonly devices: Device[];
  readonly users: Identity[];
  readonly story: Scene[];
}

interface Recipe {
  readonly name: string;
  readonly surfaces: readonly (Surface | 'any')[];
  readonly users: readonly (IdentityType | 'untyped' | 'any' | 'same id')[];
  readonly players: number;
  story(users: readonly Identity[], random: Random): Scene[];
}

const login = (device: number, user: number): Scene => ({ action: 'login', device, user });
const logout = (device: number): Scene => ({ action: 'logout', device });
const alias = (from: Identity, to: Identity): Scene => ({ action: 'alias', from, to });

const NIL_UUID = '00000000-0000-0000-0000-000000000000';
const BLOCKED_IDS = ['guest', 'Anonymous', 'undefined', 'NULL', '"null"', '0', '[object Object]', NIL_UUID];

const toRecipe =
  (players: number) =>
  (name: string, surfaces: Recipe['surfaces'], users: Recipe['users'], story: Recipe['story']): Recipe => ({
    name,
    surfaces,
    users,
    players,
    story,
  });
const [single, couple] = [toRecipe(1), toRecipe(2)];

const RECIPES: readonly Recipe[] = [
  single('never logs in', ['any'], [], () => []),
  single('logs in', ['any'], ['any'], () => [login(0, 0)]),
  single('logs in untyped', ['any'], ['untyped'], () => [login(0, 0)]),
  single('two devices of one person', ['web', 'unity'], ['any'], () => {
    return [login(0, 0), login(1, 0), { action: 'reinstall', device: 1 }, login(1, 0)];
  }),
  single('pixel before the game', ['pixel', 'unreal'], ['email'], () => [login(0, 0), login(1, 0)]),
  single('accounts linked by alias', ['unreal', 'web', 'unity'], ['steam', 'passport'], ([steam, passport]) => {
    return [login(0, 0), login(1, 1), alias(steam!, passport!), login(2, 1)];
  }),
  single('alias before any login', ['unity', 'any'], ['epic', 'passport'], ([epic, passport]) => {
    return [alias(epic!, passport!), login(0, 0), login(1, 1)];
  }),
  couple('shared device', ['web', 'any'], ['passport', 'passport'], () => {
    return [login(0, 0), logout(0), login(0, 1), login(1, 1), logout(0), login(0, 0), login(1, 0)];
  }),
  couple('shared device, untyped', ['unity'], ['untyped', 'untyped'], () => [login(0, 0), logout(0), login(0, 1)]),
  couple('alias of two known users', ['any', 'any'], ['passport', 'passport'], ([one, two]) => {
    return [login(0, 0), login(1, 1), alias(one!, two!), login(0, 0)];
  }),
  couple('same id with two types', ['any', 'any'], ['passport', 'same id'], () => [login(0, 0), login(1, 1)]),
  single('sends a blocked user id', ['any'], ['google'], ([user], random) => [
    { action: 'identify', device: 0, user: { kind: 'untyped', id: random.pick(BLOCKED_IDS) } },
    login(0, 0),
    alias({ kind: 'custom', id: random.pick(BLOCKED_IDS) }, user!),
  ]),
];

const SURFACE_CHOICES: readonly Surface[] = ['web', 'web', 'unity', 'unreal', 'pixel'];
const USER_KINDS: readonly IdentityType[] = [
  'passport',
  'steam',
  'epic',
  'google',
  'apple',
  'discord',
  'email',
  'custom',
];

export function toUserId(kind: Identity['kind'], run: Run, number: number): string {
  if (kind === 'email') return `player.${number}@${run.tag}.example`;
  if (kind === 'steam' || kind === 'discord')
    return `7${Number.parseInt(run.tag, 16)}${String(number).padStart(6, '0')}`;
  if (kind === 'passport') return `email|${run.tag}${number.toString(16).padStart(8, '0')}`;
  return `${kind}-${run.tag}-${number}`;
}

export function toAnonymousId(run: Run, random: Random): string {
  return `${random.hex(8)}-${random.hex(4)}-4${random.hex(3)}-a${random.hex(3)}-${run.tag}`;
}

function createDevice(surface: Surface, run: Run, random: Random): Device {
  const { context, timeStyle } = createContext(surface, random);
  const styles: readonly UserStyle[] = surface === 'pixel' ? ['none'] : ['none', 'typed', 'typed', 'untyped'];
  return {
    surface,
    deviceId: `device-${random.hex(16)}`,
    context,
    timeStyle,
    userStyle: random.pick(styles),
    anonymousId: toAnonymousId(run, random),
    sessionId: random.hex(32),
    user: null,
  };
}

/** Creates households with at least `players` players in total. Every recipe is used before any repeats. */
export function createHouseholds(players: number, run: Run, random: Random): Household[] {
  const draw = createDeck(random, RECIPES);
  const households: Household[] = [];
  let userNumber = 0;
  for (let count = 0; count < players; ) {
    const recipe = draw();
    count += recipe.players;
    const users: Identity[] = [];
    for (const kindOrRule of recipe.users) {
      const kind = kindOrRule === 'any' ? random.pick(USER_KINDS) : kindOrRule === 'same id' ? 'custom' : kindOrRule;
      users.push({ kind, id: kindOrRule === 'same id' ? users[0]!.id : toUserId(kind, run, userNumber++) });
    }
    const devices = recipe.surfaces.map((surface) =>
      createDevice(surface === 'any' ? random.pick(SURFACE_CHOICES) : surface, run, random),
    );
    const story = recipe.story(users, random);
    households.push({ index: households.length, recipe: recipe.name, devices, users, story });
  }
  return households;
}

type Properties = Record<string, unknown>;

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

function pickEvent(random: Random): { eventName: string; properties: Properties | undefined } {
  const eventName = random.pick(EVENT_NAMES);
  if (random.chance(0.05)) return { eventName, properties: undefined };
  return { eventName, properties: { ...EVENTS[eventName]!(random), build: '4.2.1-8842', match_id: random.hex(32) } };
}

function pickTraits(random: Random): Properties {
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
  const isBrowser = device.surface === 'web' || device.surface === 'pixel';
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
    context: isBrowser ? { ...device.context, ...pickPage(random) } : { ...device.context },
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

/** Creates a track, page or screen message, which never links identities, even if it contains both ids. */
export function createPlay(base: Base): BuiltMessage {
  const { device, random } = base;
  const isBrowser = device.surface === 'web' || device.surface === 'pixel';
  const type: MessageType = random.chance(isBrowser ? 0.5 : 0.1) ? (isBrowser ? 'page' : 'screen') : 'track';
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

/** Creates an alias message. Some clients omit the anonymous id, in which case the message has no owner. */
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

/** An unusual variation of a message, which must be accepted. */
interface Oddity {
  readonly name: string;
  /** Changes the message without affecting its owner or link fact. */
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

/** Limits count code points: an emoji is one code point, but two UTF-16 code units. */
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
  setContext('longest page URL', { pageUrl: 'https://a.example/'.padEnd(CONTEXT_CODE_POINTS_MAX.pageUrl, 'é') }),
  set('lower-case t and z', ({ eventTimestamp }) => ({ eventTimestamp: String(eventTimestamp).toLowerCase() })),
  set('nine fractional digits', ({ eventTimestamp }) => ({
    eventTimestamp: String(eventTimestamp).replace(/(\.\d+)?(Z|[+-]\d\d:\d\d)$/, '.123456789$2'),
  })),
  set('consent not set', () => ({ consentLevel: 'not_set' })),
  { name: 'no surface', change: (message) => void delete message.surface },
  set('special characters', () => ({
    properties: { text: '\u0000\u2028"\\\t</script> ﷽ \ud83c\udfae', __proto_: 1, 'a.b': '' },
  })),
];
