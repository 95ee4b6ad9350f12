/**
 * A generated game, Ember Valley. Every calendar day (UTC) has a fixed content that depends only on the game's name, so
 * generating overlapping periods yields equal messages with equal ids.
 */
import type { IdentityType, MessageType, Surface } from '@playline/contracts';
import { createRandom, type Random, toUuid } from './random.ts';

export interface DemoMessage {
  readonly messageId: string;
  readonly type: Exclude<MessageType, 'alias'>;
  /** Empty for types without a name, and for the messages of the broken client. */
  readonly eventName: string;
  readonly atMs: number;
  readonly anonymousId: string;
  readonly userId: string;
  readonly identityType: IdentityType | '';
  readonly sessionId: string;
  readonly surface: Surface;
  readonly library: string;
  readonly libraryVersion: string;
  readonly locale: string;
  readonly timezone: string;
  readonly page: { readonly url: string; readonly path: string; readonly referrer: string } | null;
  readonly properties: Readonly<Record<string, unknown>> | null;
  readonly traits: Readonly<Record<string, unknown>> | null;
  readonly consent: 'none' | 'anonymous' | 'full';
}

export type DemoEntry =
  | { readonly kind: 'message'; readonly message: DemoMessage }
  /** A message without a name, which gateways reject. */
  | { readonly kind: 'rejection'; readonly message: DemoMessage }
  | {
      readonly kind: 'consent';
      readonly anonymousId: string;
      readonly status: 'none' | 'anonymous' | 'full';
      readonly atMs: number;
    };

export const DAY_MS = 24 * 60 * 60 * 1000;
const MINUTE_MS = 60_000;

/** New players on an average day. With earlier players who return, 30 days have about 2,000 players. */
const NEW_PLAYERS = 36;
/** Players who joined earlier than this many days ago no longer play. */
const LIFETIME_DAYS = 30;
/** By weekday, starting with Sunday. */
const WEEKDAYS = [1.35, 0.85, 0.8, 0.85, 0.9, 1.1, 1.4];
/** Local hours, each as often as its weight: players prefer evenings. */
const HOURS = [3, 2, 1, 1, 1, 1, 2, 4, 5, 4, 4, 5, 7, 6, 5, 6, 8, 10, 13, 16, 18, 17, 12, 6].flatMap((weight, hour) =>
  Array<number>(weight).fill(hour),
);

const REGIONS = [
  { locale: 'en-US', timezone: 'America/New_York', utcOffsetH: -5, currency: 'USD', weight: 4 },
  { locale: 'de-DE', timezone: 'Europe/Berlin', utcOffsetH: 1, currency: 'EUR', weight: 3 },
  { locale: 'ja-JP', timezone: 'Asia/Tokyo', utcOffsetH: 9, currency: 'JPY', weight: 2 },
  { locale: 'pt-BR', timezone: 'America/Sao_Paulo', utcOffsetH: -3, currency: 'BRL', weight: 1 },
].flatMap((region) => Array<typeof region>(region.weight).fill(region));

const CAMPAIGNS = ['', '', 'spring_launch', 'creator_week', 'retarget_eu'];
const REFERRERS = ['', 'https://www.reddit.com/', 'https://www.youtube.com/', 'https://news.example/'];
const ITEMS = [
  { item: 'starter_pack', price: 4.99 },
  { item: 'gem_pouch', price: 1.99 },
  { item: 'season_pass', price: 9.99 },
  { item: 'dragon_skin', price: 14.99 },
] as const;
const TUTORIAL_STEPS = ['move', 'gather', 'build', 'fight', 'trade'];

/** A client is released every 30 days, so 30 days have two versions. */
const RELEASE_DAYS = 30;
/** The day of version 0.0.0. */
const FIRST_RELEASE_DAY = 20_100;
const releaseOf = (day: number) => Math.floor((day - FIRST_RELEASE_DAY) / RELEASE_DAYS);
/** Players who do not update immediately do so this many days later. */
const LATE_UPDATE_DAYS = 5;

/** On the day of its release, the Unity client sends completed levels without a name. */
export const isBrokenDay = (day: number): boolean => day % RELEASE_DAYS === 0;

interface Player {
  readonly name: string;
  readonly joinDay: number;
  readonly region: (typeof REGIONS)[number];
  readonly surface: 'web' | 'unity' | 'unreal';
  readonly anonymousId: string;
  /** Empty if the player never signs up. */
  readonly email: string;
  /** Factor for the probability of returning. */
  readonly loyalty: number;
  readonly isPayer: boolean;
  readonly consent: 'none' | 'anonymous' | 'full';
  readonly number: number;
}

/** Whether the player updates the client on the day of a release. */
const updatesEarly = ({ number }: Player) => number % 2 === 0;

const weekdayOf = (day: number) => new Date(day * DAY_MS).getUTCDay();

function createPlayer(joinDay: number, number: number): Player {
  const name = `${joinDay}/${number}`;
  const random = createRandom(`player ${name}`);
  const region = random.pick(REGIONS);
  const surface = random.pick(['unity', 'unity', 'unity', 'web', 'web', 'unreal'] as const);
  // Every twentieth player uses the device of the previous one, as siblings do.
  const owner = number % 20 === 19 ? number - 1 : number;
  return {
    name,
    joinDay,
    number,
    region,
    surface: owner === number ? surface : createPlayer(joinDay, owner).surface,
    anonymousId: `device-${toUuid(`device ${joinDay}/${owner}`)}`,
    email: random.chance(0.55) || owner !== number ? `player.${joinDay}.${number}@ember-valley.example` : '',
    loyalty: random.chance(0.15) ? 2.2 : random.chance(0.4) ? 1 : 0.55,
    isPayer: random.chance(0.12),
    consent: random.pick(['full', 'full', 'full', 'anonymous', 'none'] as const),
  };
}

/** The probability of playing on the given day after joining: about 0.4 after one day and 0.1 after four weeks. */
function returnsOn({ joinDay, loyalty }: Player, day: number): number {
  const age = day - joinDay;
  if (age === 0) return 1;
  return Math.min(0.95, 0.45 * age ** -0.45 * loyalty * WEEKDAYS[weekdayOf(day)]!);
}

/** Generates the entries of a day, given in days since 1970-01-01 (UTC), in the order of their times. */
export function createDay(day: number): DemoEntry[] {
  const entries: DemoEntry[] = [];
  for (let joinDay = day - LIFETIME_DAYS; joinDay <= day; joinDay++) {
    const count = Math.round(NEW_PLAYERS * WEEKDAYS[weekdayOf(joinDay)]!);
    for (let number = 0; number < count; number++) {
      const player = createPlayer(joinDay, number);
      const random = createRandom(`day ${day} of ${player.name}`);
      if (!random.chance(returnsOn(player, day))) continue;
      for (const entry of playDay(player, day, random)) entries.push(entry);
    }
  }
  return entries.toSorted((a, b) => timeOf(a) - timeOf(b));
}

export const timeOf = (entry: DemoEntry): number => (entry.kind === 'consent' ? entry.atMs : entry.message.atMs);

function playDay(player: Player, day: number, random: Random): DemoEntry[] {
  const sessions = 1 + (random.chance(0.3 * player.loyalty) ? 1 : 0) + (random.chance(0.08 * player.loyalty) ? 1 : 0);
  return Array.from({ length: sessions }, (_, index) => {
    const isFirst = day === player.joinDay && index === 0;
    return new Session({ player, day, index, isFirst, random }).play();
  }).flat();
}

/** Picks a minute of the UTC day, by the local hours that players prefer. */
function pickStartMs(player: Player, day: number, random: Random): number {
  const hour = (random.pick(HOURS) - player.region.utcOffsetH + 24) % 24;
  return day * DAY_MS + hour * 60 * MINUTE_MS + random.integer(0, 59 * MINUTE_MS);
}

interface SessionParts {
  readonly player: Player;
  readonly day: number;
  readonly index: number;
  readonly isFirst: boolean;
  readonly random: Random;
}

/** Plays one session and records what the client sends. */
class Session {
  readonly #parts: SessionParts;
  readonly #entries: DemoEntry[] = [];
  readonly #sessionId: string;
  readonly #lastMs: number;
  #atMs: number;
  #isSignedIn: boolean;

  constructor(parts: SessionParts) {
    const { player, day, index, isFirst, random } = parts;
    this.#parts = parts;
    this.#sessionId = toUuid(`session ${day} ${index} of ${player.name}`);
    this.#atMs = pickStartMs(player, day, random);
    this.#lastMs = (day + 1) * DAY_MS - 1;
    this.#isSignedIn = !isFirst && player.email !== '';
  }

  play(): DemoEntry[] {
    const { player, isFirst } = this.#parts;
    if (isFirst && player.surface === 'web') this.#visit('/');
    if (isFirst) this.#decideConsent();
    this.#track('session_start', { entry: isFirst ? 'first' : 'returning' });
    if (isFirst && !this.#playTutorial()) return this.#entries;
    if (isFirst && player.email !== '') this.#signUp();
    this.#playLevels();
    this.#shop();
    return this.#entries;
  }

  #visit(path: string): void {
    const { random } = this.#parts;
    const campaign = random.pick(CAMPAIGNS);
    const url = `https://play.ember-valley.example${path}${campaign === '' ? '' : `?utm_campaign=${campaign}`}`;
    this.#send('page', '', { page: { url, path, referrer: random.pick(REFERRERS) } });
  }

  #decideConsent(): void {
    const { anonymousId, consent: status } = this.#parts.player;
    this.#wait(2, 15);
    this.#entries.push({ kind: 'consent', anonymousId, status, atMs: this.#atMs });
  }

  /** Returns false if the player leaves before the last step. */
  #playTutorial(): boolean {
    for (const [index, step] of TUTORIAL_STEPS.entries()) {
      if (index > 0 && this.#parts.random.chance(0.11)) return false;
      this.#wait(20, 90);
      this.#track('tutorial_step', { step: index + 1, name: step });
    }
    this.#track('tutorial_completed', {});
    return true;
  }

  #signUp(): void {
    const { region, isPayer } = this.#parts.player;
    this.#wait(5, 40);
    this.#isSignedIn = true;
    this.#send('identify', '', { traits: { plan: isPayer ? 'season' : 'free', country: region.locale.slice(-2) } });
  }

  #playLevels(): void {
    const { random, player, day } = this.#parts;
    const difficulty = random.pick(['easy', 'normal', 'normal', 'hard']);
    let level = 1 + 2 * (day - player.joinDay);
    for (let count = random.integer(1, 5); count > 0; count--) {
      this.#track('match_started', { level, difficulty });
      this.#wait(60, 420);
      const isWon = random.chance(0.72);
      const duration_s = random.integer(60, 420);
      this.#track(isWon ? this.#completed() : 'level_failed', { level, difficulty, duration_s });
      if (isWon) level++;
    }
  }

  #shop(): void {
    const { random, player } = this.#parts;
    if (!random.chance(player.isPayer ? 0.7 : 0.2)) return;
    this.#send('screen', 'Shop', {});
    const { item, price } = random.pick(ITEMS);
    this.#wait(5, 60);
    this.#track('item_viewed', { item });
    if (!player.isPayer || !random.chance(0.6)) return;
    this.#wait(5, 60);
    this.#track('item_purchased', { item, price, currency: player.region.currency });
  }

  #wait(minS: number, maxS: number): void {
    // A session that would pass midnight ends with many events in the last second of the day.
    this.#atMs = Math.min(this.#lastMs, this.#atMs + 1000 * this.#parts.random.integer(minS, maxS));
  }

  #completed(): string {
    const { player, day } = this.#parts;
    return isBrokenDay(day) && player.surface === 'unity' && updatesEarly(player) ? '' : 'level_completed';
  }

  #version(): string {
    const { player, day } = this.#parts;
    const release = releaseOf(updatesEarly(player) ? day : day - LATE_UPDATE_DAYS);
    return `${Math.floor(release / 10)}.${release % 10}.0`;
  }

  #track(eventName: string, properties: Readonly<Record<string, unknown>>): void {
    this.#send('track', eventName, { properties });
  }

  #send(
    type: DemoMessage['type'],
    eventName: string,
    { properties = null, traits = null, page = null }: Partial<Pick<DemoMessage, 'properties' | 'traits' | 'page'>>,
  ): void {
    const { player } = this.#parts;
    const { surface, region } = player;
    const message: DemoMessage = {
      messageId: toUuid(`message ${this.#entries.length} of ${this.#sessionId}`),
      type,
      eventName,
      atMs: this.#atMs,
      anonymousId: player.anonymousId,
      userId: this.#isSignedIn ? player.email : '',
      identityType: this.#isSignedIn ? 'email' : '',
      sessionId: this.#sessionId,
      surface,
      library: `playline-${surface}`,
      libraryVersion: this.#version(),
      locale: region.locale,
      timezone: region.timezone,
      page,
      properties,
      traits,
      consent: player.consent,
    };
    this.#entries.push({ kind: type === 'track' && eventName === '' ? 'rejection' : 'message', message });
    this.#atMs = Math.min(this.#lastMs, this.#atMs + this.#parts.random.integer(200, 4_000));
  }
}
