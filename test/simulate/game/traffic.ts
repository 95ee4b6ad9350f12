import { BATCH_MESSAGES_MAX } from '@playline/contracts';
import { createDeck, createRandom, type Random } from '@playline/testkit/random';
import { type Ledger, type Run, toMessageId } from '../run.ts';
import { BREAKAGES, type Breakage } from './breakage.ts';
import { type BuiltMessage, createAlias, createIdentify, createPlay, ODDITIES } from './messages.ts';
import type { Identity, LinkFact } from './persons.ts';
import {
  createHouseholds,
  type Device,
  type Household,
  pickDelayMs,
  type Scene,
  toAnonymousId,
  toUserId,
} from './players.ts';

/** The expected answer to a batch: the set of `field CODE` for each rejected message id, and the number accepted. */
export interface Expectation {
  accepted: number;
  rejected: number;
  /** `messageId` as in the answer -> set of `field CODE`. */
  rejections: Map<string, Set<string>>;
}

export function createExpectation(): Expectation {
  return { accepted: 0, rejected: 0, rejections: new Map() };
}

/** Adds messages that must be rejected; errors of one id are merged, as the answer has one entry for each id. */
export function expectRejection(
  expectation: Expectation,
  rejected: { echo: string; errors: readonly (readonly [string, string])[]; messages: number },
): void {
  const entry = expectation.rejections.get(rejected.echo) ?? new Set();
  for (const [field, code] of rejected.errors) entry.add(`${field} ${code}`);
  expectation.rejections.set(rejected.echo, entry);
  expectation.rejected += rejected.messages;
}

/** The service's answer, parsed leniently: a difference is reported and does not end the run. */
export interface Verdict {
  readonly success: boolean;
  readonly accepted: number;
  readonly rejected: number;
  readonly rejections: readonly { messageId: string; errors: readonly { field: string; code: string }[] }[];
}

/** Parses a MessagesResponse; null for any other text. */
export function parseVerdict(text: string): Verdict | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const candidate = value as Partial<Verdict> | null;
  const shaped =
    typeof candidate?.success === 'boolean' &&
    Number.isInteger(candidate.accepted) &&
    Number.isInteger(candidate.rejected) &&
    Array.isArray(candidate.rejections);
  return shaped ? (candidate as Verdict) : null;
}

/** All differences between an answer and the expected one, one sentence each; empty when they agree. */
export function differencesOf(expected: Expectation, status: number, verdict: Verdict): string[] {
  const differences: string[] = [];
  const compare = (what: string, wanted: unknown, given: unknown) => {
    if (wanted !== given) differences.push(`${what}: expected ${wanted}, was ${given}`);
  };
  compare('status', expected.accepted > 0 ? 200 : 400, status);
  compare('success', expected.accepted > 0, verdict.success);
  compare('accepted', expected.accepted, verdict.accepted);
  compare('rejected', expected.rejected, verdict.rejected);
  const given = new Map<string, string>();
  for (const { messageId, errors } of verdict.rejections) {
    if (given.has(messageId)) differences.push(`two entries for message id ${JSON.stringify(messageId)}`);
    given.set(messageId, toText(new Set(errors.map(({ field, code }) => `${field} ${code}`))));
  }
  for (const [messageId, errors] of expected.rejections) {
    compare(`rejection of ${JSON.stringify(messageId)}`, toText(errors), given.get(messageId) ?? 'none');
    given.delete(messageId);
  }
  for (const [messageId, errors] of given) compare(`rejection of ${JSON.stringify(messageId)}`, 'none', errors);
  return differences;
}

function toText(errors: ReadonlySet<string>): string {
  return [...errors].sort().join(', ');
}

export const ENCODINGS = ['identity', 'gzip', 'deflate', 'br', 'zstd'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** A valid message of a batch. */
export interface SoundMessage {
  readonly sequence: number;
  readonly owner: Identity | null;
  readonly fact: LinkFact | null;
}

export interface Batch {
  readonly household: number;
  /** JSON text of the body. */
  readonly body: string;
  readonly messages: number;
  readonly sound: readonly SoundMessage[];
  /** Sequence numbers of messages that must be rejected and never stored. */
  readonly broken: readonly number[];
  readonly expectation: Expectation;
  readonly encoding: Encoding;
  /** Send once more after the answer, like a client that has lost its state. */
  readonly resent: boolean;
  /** Cut the connection before the answer, then send again. */
  readonly answerLost: boolean;
  /** Names of its breakages and oddities. */
  readonly ways: readonly string[];
}

export interface Traffic {
  readonly households: readonly Household[];
  /** The next batch of the run; the same seed, tag and times give the same batches. */
  next(nowMs: number): Batch;
}

/** Shares of the traffic; even small ones occur in a run of some thousand messages. */
const SHARES = {
  oddity: 0.05,
  reordered: 0.15,
  scene: 0.5,
  loginAgain: 0.08,
  session: 0.1,
  resent: 0.03,
  answerLost: 0.01,
};

export interface TrafficOptions {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly players: number;
  /** Share of broken messages, 0 to 1. */
  readonly brokenShare: number;
  /** Batches have 1 to this many messages, each size equally often; by default as many as clients send. */
  readonly batchMax?: number;
  /** Length of the longest filler in the properties of an event; by default there is none. */
  readonly fillMax?: number;
}

export function createTraffic(options: TrafficOptions): Traffic {
  const { run, ledger, brokenShare, batchMax } = options;
  const fillMax = options.fillMax ?? 0;
  const random = createRandom(run.seed);
  const households = createHouseholds(options.players, run, random);
  const drawBreakage = createDeck(random, BREAKAGES);
  const drawOddity = createDeck(random, ODDITIES);

  const next = (nowMs: number): Batch => {
    const household = random.pick(households);
    const { device, fact } = play(household, run, random);
    if (random.chance(SHARES.session)) device.sessionId = random.hex(32);
    const draft = new Draft({ run, ledger, random, device, nowMs, fillMax });
    const size = batchMax === undefined ? pickSize(random) : random.integer(1, batchMax);
    // Added first, so that a fact always has room.
    if (fact !== null) draft.addSound(fact.create);
    while (draft.size < size) {
      if (random.chance(brokenShare)) draft.addBroken(drawBreakage());
      else draft.addSound(createPlay, random.chance(SHARES.oddity) ? drawOddity() : null);
    }
    return draft.finish(household.index);
  };
  return { households, next };
}

/** Clients send a single event, a few, or a full queue. */
function pickSize(random: Random): number {
  const draw = random.next();
  if (draw < 0.15) return 1;
  if (draw < 0.6) return random.integer(2, 20);
  if (draw < 0.88) return random.integer(21, 60);
  return BATCH_MESSAGES_MAX;
}

function pickEncoding(random: Random): Encoding {
  const draw = random.next();
  if (draw < 0.65) return 'identity';
  return draw < 0.94 ? 'gzip' : random.pick(['deflate', 'br', 'zstd'] as const);
}

type Base = Parameters<typeof createPlay>[0];
type Create = (base: Base) => BuiltMessage;

/** Plays the household's next step: the sending device, and the link fact of its batch, if any. */
function play(household: Household, run: Run, random: Random): { device: Device; fact: { create: Create } | null } {
  const scene = household.story.length > 0 && random.chance(SHARES.scene) ? household.story.shift()! : null;
  if (scene !== null) return playScene(household, scene, { run, random });
  const device = random.pick(household.devices);
  const { user } = device;
  const again = user !== null && random.chance(SHARES.loginAgain);
  return { device, fact: again ? { create: (base) => createIdentify(base, user) } : null };
}

function playScene(
  household: Household,
  scene: Scene,
  { run, random }: { run: Run; random: Random },
): { device: Device; fact: { create: Create } | null } {
  if (scene.act === 'alias') {
    const device = household.devices[0]!;
    return { device, fact: { create: (base) => createAlias(base, scene.from, scene.to) } };
  }
  const device = household.devices[scene.device]!;
  if (scene.act === 'logout' || scene.act === 'reinstall') {
    device.user = null;
    if (scene.act === 'reinstall') device.anonymousId = toAnonymousId(run, random);
    return { device, fact: null };
  }
  const user = scene.act === 'login' ? household.users[scene.user]! : scene.user;
  device.user = user;
  return { device, fact: { create: (base) => createIdentify(base, user) } };
}

interface DraftOptions {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly random: Random;
  readonly device: Device;
  readonly nowMs: number;
  readonly fillMax: number;
}

/** A batch in the making, from its latest event back. */
class Draft {
  size = 0;
  readonly #options: DraftOptions;
  /** Elements with the same id stay together, since the answer repeats the first one's spelling. */
  readonly #groups: string[][] = [];
  readonly #sound: SoundMessage[] = [];
  readonly #broken: number[] = [];
  readonly #ways: string[] = [];
  readonly #expectation = createExpectation();
  #timeMs: number;

  constructor(options: DraftOptions) {
    this.#options = options;
    this.#timeMs = options.nowMs - pickDelayMs(options.random);
  }

  #next(): { sequence: number; base: Base } {
    const { run, ledger, random, device } = this.#options;
    const sequence = ledger.take();
    // Events of a batch are up to a second apart.
    this.#timeMs -= random.integer(0, 1000);
    return { sequence, base: { device, messageId: toMessageId(run, sequence), timeMs: this.#timeMs, random } };
  }

  #add(elements: string[]): void {
    this.#groups.push(elements);
    this.size += elements.length;
  }

  addSound(create: Create, oddity: (typeof ODDITIES)[number] | null = null): void {
    const { sequence, base } = this.#next();
    const { message, owner, fact } = create(base);
    const { random, fillMax } = this.#options;
    if (fillMax > 0 && fact === null)
      message.properties = { ...(message.properties as object), fill: 'x'.repeat(random.integer(0, fillMax)) };
    if (oddity !== null) {
      oddity.change(message, base.random);
      this.#ways.push(oddity.name);
    }
    this.#add([JSON.stringify(message)]);
    this.#sound.push({ sequence, owner, fact });
    this.#expectation.accepted++;
  }

  /** Adds a broken message; nothing if the batch has one of this kind, a valid one without room. */
  addBroken(breakage: Breakage): void {
    // Two of the same kind may have the same id in the answer, which would be a duplicate.
    if (this.#ways.includes(breakage.name)) return;
    const { sequence, base } = this.#next();
    const { message } = createOfType(breakage.type, base, this.#options.run);
    const elements = breakage.toElements(message, this.#options.nowMs);
    if (this.size + elements.length > BATCH_MESSAGES_MAX) {
      this.addSound(createPlay);
      return;
    }
    this.#add(elements);
    this.#broken.push(sequence);
    this.#ways.push(breakage.name);
    const echo = breakage.echo?.(message) ?? base.messageId;
    expectRejection(this.#expectation, { echo, errors: breakage.errors, messages: elements.length });
  }

  finish(household: number): Batch {
    const { random } = this.#options;
    const groups = random.chance(SHARES.reordered) ? random.shuffle(this.#groups) : this.#groups.reverse();
    return {
      household,
      body: `{"messages":[${groups.flat().join(',')}]}`,
      messages: this.size,
      sound: this.#sound,
      broken: this.#broken,
      expectation: this.#expectation,
      encoding: pickEncoding(random),
      resent: random.chance(SHARES.resent),
      answerLost: random.chance(SHARES.answerLost),
      ways: this.#ways,
    };
  }
}

/** A valid message of a type, to be broken. Its users occur nowhere else, since it must not be stored. */
function createOfType(type: Breakage['type'], base: Base, run: Run): BuiltMessage {
  const user = (number: number): Identity => ({ kind: 'custom', id: `broken-${toUserId('custom', run, number)}` });
  if (type === 'identify') return createIdentify(base, user(1));
  if (type === 'alias') return createAlias(base, user(2), user(3));
  const built = createPlay(base);
  const { properties, ...rest } = built.message;
  return { ...built, message: { ...rest, type: 'track', eventName: 'level_started', properties } };
}
