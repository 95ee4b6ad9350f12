import { BATCH_MESSAGES_MAX } from '@playline/contracts';
import { createDeck, createRandom, type Random } from '@playline/testkit/random';
import { parseJson } from '../delivery.ts';
import { type Ledger, type Run, toMessageId } from '../run.ts';
import type { Identity, LinkFact } from './persons.ts';
import {
  type BuiltMessage,
  createAlias,
  createHouseholds,
  createIdentify,
  createPlay,
  type Device,
  type Household,
  ODDITIES,
  pickDelayMs,
  type Scene,
  toAnonymousId,
  toUserId,
} from './players.ts';
import { VIOLATIONS, type Violation } from './violations.ts';

export interface Expectation {
  accepted: number;
  rejected: number;
  /** Sets of `field CODE`, by the rejection's `messageId`. */
  rejections: Map<string, Set<string>>;
}

export const createExpectation = (): Expectation => ({ accepted: 0, rejected: 0, rejections: new Map() });

/** Adds messages that must be rejected. Merges errors by id, because the response has one entry per id. */
export function expectRejection(
  expectation: Expectation,
  rejected: { echo: string; errors: readonly (readonly [string, string])[]; messages: number },
): void {
  const entry = expectation.rejections.get(rejected.echo) ?? new Set();
  for (const [field, code] of rejected.errors) entry.add(`${field} ${code}`);
  expectation.rejections.set(rejected.echo, entry);
  expectation.rejected += rejected.messages;
}

/** Parsed leniently, because a wrong response must not end the run. */
export interface BatchResponse {
  readonly success: boolean;
  readonly accepted: number;
  readonly rejected: number;
  readonly rejections: readonly { messageId: string; errors: readonly { field: string; code: string }[] }[];
}

export function parseBatchResponse(text: string): BatchResponse | null {
  const candidate = parseJson(text) as Partial<BatchResponse> | null | undefined;
  const isBatchResponse =
    typeof candidate?.success === 'boolean' &&
    Number.isInteger(candidate.accepted) &&
    Number.isInteger(candidate.rejected) &&
    Array.isArray(candidate.rejections);
  return isBatchResponse ? (candidate as BatchResponse) : null;
}

export function differencesOf(expected: Expectation, status: number, response: BatchResponse): string[] {
  const differences: string[] = [];
  const compare = (name: string, wanted: unknown, actual: unknown) => {
    if (wanted !== actual) differences.push(`${name}: expected ${wanted}, got ${actual}`);
  };
  compare('status', expected.accepted > 0 ? 200 : 400, status);
  compare('success', expected.accepted > 0, response.success);
  compare('accepted', expected.accepted, response.accepted);
  compare('rejected', expected.rejected, response.rejected);
  const given = new Map<string, string>();
  for (const { messageId, errors } of response.rejections) {
    if (given.has(messageId)) differences.push(`two entries for message id ${JSON.stringify(messageId)}`);
    given.set(messageId, toText(new Set(errors.map(({ field, code }) => `${field} ${code}`))));
  }
  for (const [messageId, errors] of expected.rejections) {
    compare(`rejection for ${JSON.stringify(messageId)}`, toText(errors), given.get(messageId) ?? 'none');
    given.delete(messageId);
  }
  for (const [messageId, errors] of given) compare(`rejection for ${JSON.stringify(messageId)}`, 'none', errors);
  return differences;
}

const toText = (errors: ReadonlySet<string>): string => [...errors].sort().join(', ');

export type Encoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd';

export interface ValidMessage {
  readonly sequence: number;
  readonly owner: Identity | null;
  readonly fact: LinkFact | null;
}

export interface Batch {
  readonly household: number;
  readonly body: string;
  readonly messages: number;
  readonly valid: readonly ValidMessage[];
  /** Sequence numbers of messages that must be rejected and not stored. */
  readonly broken: readonly number[];
  readonly expectation: Expectation;
  readonly encoding: Encoding;
  /** Resend the batch after the response, like a client that lost its state. */
  readonly resent: boolean;
  /** Close the connection before the response, then resend the batch. */
  readonly responseLost: boolean;
  readonly variants: readonly string[];
}

export interface Traffic {
  readonly households: readonly Household[];
  next(nowMs: number): Batch;
}

const FRACTIONS = {
  oddity: 0.05,
  reordered: 0.15,
  scene: 0.5,
  loginAgain: 0.08,
  session: 0.1,
  resent: 0.03,
  responseLost: 0.01,
};

export interface TrafficOptions {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly players: number;
  readonly brokenFraction: number;
  /** If set, batch sizes are uniformly distributed from 1 to this. Default: the size distribution of real clients. */
  readonly batchMax?: number;
  readonly fillMax?: number;
}

export function createTraffic(options: TrafficOptions): Traffic {
  const { run, ledger, brokenFraction, batchMax } = options;
  const fillMax = options.fillMax ?? 0;
  const random = createRandom(run.seed);
  const households = createHouseholds(options.players, run, random);
  const drawViolation = createDeck(random, VIOLATIONS);
  const drawOddity = createDeck(random, ODDITIES);

  const next = (nowMs: number): Batch => {
    const household = random.pick(households);
    const { device, createFact } = play(household, run, random);
    if (random.chance(FRACTIONS.session)) device.sessionId = random.hex(32);
    const builder = new BatchBuilder({ run, ledger, random, device, nowMs, fillMax });
    const size = batchMax === undefined ? pickSize(random) : random.integer(1, batchMax);
    // The fact is added first, because the batch may not have space for it later.
    if (createFact !== null) builder.addValid(createFact);
    while (builder.size < size) {
      if (random.chance(brokenFraction)) builder.addInvalid(drawViolation());
      else builder.addValid(createPlay, random.chance(FRACTIONS.oddity) ? drawOddity() : null);
    }
    return builder.finish(household.index);
  };
  return { households, next };
}

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
interface Step {
  readonly device: Device;
  readonly createFact: Create | null;
}

function play(household: Household, run: Run, random: Random): Step {
  const scene = household.story.length > 0 && random.chance(FRACTIONS.scene) ? household.story.shift()! : null;
  if (scene !== null) return playScene(household, scene, () => toAnonymousId(run, random));
  const device = random.pick(household.devices);
  const { user } = device;
  const repeatsLogin = user !== null && random.chance(FRACTIONS.loginAgain);
  return { device, createFact: repeatsLogin ? (base) => createIdentify(base, user) : null };
}

function playScene(household: Household, scene: Scene, newAnonymousId: () => string): Step {
  if (scene.action === 'alias')
    return { device: household.devices[0]!, createFact: (base) => createAlias(base, scene.from, scene.to) };
  const device = household.devices[scene.device]!;
  if (scene.action === 'logout' || scene.action === 'reinstall') {
    device.user = null;
    if (scene.action === 'reinstall') device.anonymousId = newAnonymousId();
    return { device, createFact: null };
  }
  const user = scene.action === 'login' ? household.users[scene.user]! : scene.user;
  device.user = user;
  return { device, createFact: (base) => createIdentify(base, user) };
}

type BatchBuilderOptions = Pick<TrafficOptions, 'run' | 'ledger'> & {
  readonly random: Random;
  readonly device: Device;
  readonly nowMs: number;
  readonly fillMax: number;
};

class BatchBuilder {
  size = 0;
  readonly #options: BatchBuilderOptions;
  /** Elements with the same id stay adjacent, because the response contains the id as written in the first element. */
  readonly #groups: string[][] = [];
  readonly #valid: ValidMessage[] = [];
  readonly #broken: number[] = [];
  readonly #variants: string[] = [];
  readonly #expectation = createExpectation();
  #timeMs: number;

  constructor(options: BatchBuilderOptions) {
    this.#options = options;
    this.#timeMs = options.nowMs - pickDelayMs(options.random);
  }

  #next(): { sequence: number; base: Base } {
    const { run, ledger, random, device } = this.#options;
    const sequence = ledger.take();
    this.#timeMs -= random.integer(0, 1000);
    return { sequence, base: { device, messageId: toMessageId(run, sequence), timeMs: this.#timeMs, random } };
  }

  #add(elements: string[]): void {
    this.#groups.push(elements);
    this.size += elements.length;
  }

  addValid(create: Create, oddity: (typeof ODDITIES)[number] | null = null): void {
    const { sequence, base } = this.#next();
    const { message, owner, fact } = create(base);
    const { random, fillMax } = this.#options;
    if (fillMax > 0 && fact === null)
      message.properties = { ...(message.properties as object), fill: 'x'.repeat(random.integer(0, fillMax)) };
    if (oddity !== null) {
      oddity.change(message, base.random);
      this.#variants.push(oddity.name);
    }
    this.#add([JSON.stringify(message)]);
    this.#valid.push({ sequence, owner, fact });
    this.#expectation.accepted++;
  }

  /** Adds an invalid message, unless the batch contains the same violation or has no space for all elements. */
  addInvalid(violation: Violation): void {
    // Two messages with the same violation might have the same id in the response.
    if (this.#variants.includes(violation.name)) return;
    const { sequence, base } = this.#next();
    const { message } = createOfType(violation.type, base, this.#options.run);
    const elements = violation.toElements(message, this.#options.nowMs);
    if (this.size + elements.length > BATCH_MESSAGES_MAX) {
      this.addValid(createPlay);
      return;
    }
    this.#add(elements);
    this.#broken.push(sequence);
    this.#variants.push(violation.name);
    const echo = violation.echo?.(message) ?? base.messageId;
    expectRejection(this.#expectation, { echo, errors: violation.errors, messages: elements.length });
  }

  finish(household: number): Batch {
    const { random } = this.#options;
    const groups = random.chance(FRACTIONS.reordered) ? random.shuffle(this.#groups) : this.#groups.reverse();
    return {
      household,
      body: `{"messages":[${groups.flat().join(',')}]}`,
      messages: this.size,
      valid: this.#valid,
      broken: this.#broken,
      expectation: this.#expectation,
      encoding: pickEncoding(random),
      resent: random.chance(FRACTIONS.resent),
      responseLost: random.chance(FRACTIONS.responseLost),
      variants: this.#variants,
    };
  }
}

function createOfType(type: Violation['type'], base: Base, run: Run): BuiltMessage {
  const user = (number: number): Identity => ({ kind: 'custom', id: `broken-${toUserId('custom', run, number)}` });
  if (type === 'identify') return createIdentify(base, user(1));
  if (type === 'alias') return createAlias(base, user(2), user(3));
  const built = createPlay(base);
  const { properties, ...rest } = built.message;
  return { ...built, message: { ...rest, type: 'track', eventName: 'level_started', properties } };
}
