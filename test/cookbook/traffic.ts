import {
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  type Message,
  type RejectionRecord,
  SURFACES,
} from '@playline/contracts';
import { validateBatch } from '@playline/contracts/test';
import { createRandom, type Random } from '@playline/testkit/random';
import type { Identity, PersonsModel } from '../simulate/game/persons.ts';
import { createCast } from '../simulate/game/persons.ts';
import { type Batch, createTraffic, type Traffic } from '../simulate/game/traffic.ts';
import { createLedger } from '../simulate/run.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Includes a week before and a week after the days of the recipes, whose events must not count. */
const FROM_MS = Date.parse('2026-06-01T00:00:00Z');
const TO_MS = Date.parse('2026-07-20T00:00:00Z');
const [PLAYERS, BATCHES, BROKEN_SHARE] = [70, 420, 0.05];
/** A client that lost the answer sends the same batch again after this time. */
const AGAIN_MS = 5_000;
/** The id of one message in this many is reused by a different message. */
const CONFLICT_EVERY = 150;
const SESSION_ENDS_SHARE = 0.5;

/** A message as a gateway accepted it. A resent message occurs several times. */
export interface AcceptedCopy {
  readonly message: Message;
  readonly receivedAt: number;
  readonly traceId: string;
}

/** Traffic of some weeks, and the persons of its ids. */
export interface SimulatedTraffic {
  readonly copies: readonly AcceptedCopy[];
  readonly rejections: readonly Omit<RejectionRecord, 'environmentId'>[];
  /** Every identity that owns a message or was linked. */
  readonly identities: readonly Identity[];
  readonly persons: PersonsModel;
}

/** Simulates seven weeks of traffic. Seed, ids and times are fixed, so it is the same each time. */
export function createSimulatedTraffic(): SimulatedTraffic {
  const run = { seed: 13, tag: '0123456789ab', startedAtMs: FROM_MS };
  const [random, ledger, cast] = [createRandom(run.seed), createLedger(), createCast()];
  const traffic = createTraffic({ run, players: PLAYERS, brokenShare: BROKEN_SHARE, ledger });
  const copies: AcceptedCopy[] = [];
  const rejections: Omit<RejectionRecord, 'environmentId'>[] = [];
  const identities = new Map<string, Identity>();
  const add = (identity: Identity) => identities.set(`${identity.kind} ${identity.id}`, identity);
  for (let number = 0; number < BATCHES; number++) {
    const nowMs = FROM_MS + Math.floor(((TO_MS - FROM_MS) * number) / BATCHES) + random.integer(0, HOUR_MS);
    endSessions(traffic, random);
    const batch = traffic.next(nowMs);
    for (const sound of batch.sound) {
      cast.accept(batch.household, sound);
      for (const each of [sound.owner, sound.fact?.from, sound.fact?.to]) if (each) add(each);
    }
    for (const receivedAt of batch.resent || batch.responseLost ? [nowMs, nowMs + AGAIN_MS] : [nowMs]) {
      const result = validate(batch, receivedAt, random.hex(32));
      copies.push(...result.copies);
      rejections.push(...result.rejections);
    }
  }
  return {
    copies: [...copies, ...createConflicts(copies)],
    rejections,
    identities: [...identities.values()],
    persons: cast.model,
  };
}

/** Over weeks, a device sometimes starts a new session between two batches. */
function endSessions({ households }: Traffic, random: Random): void {
  for (const { devices } of households)
    for (const device of devices) if (random.chance(SESSION_ENDS_SHARE)) device.sessionId = random.hex(32);
}

/** Accepts and rejects messages as the gateway does. */
function validate(batch: Batch, receivedAt: number, traceId: string): Pick<SimulatedTraffic, 'copies' | 'rejections'> {
  const document = JSON.parse(batch.body) as { messages: unknown[] };
  const sources = document.messages.map((element) => ({
    bytes: Buffer.byteLength(JSON.stringify(element)),
    messageIdText: JSON.stringify((element as { messageId?: unknown } | null)?.messageId) ?? '',
  }));
  const window = { fromMs: receivedAt - EVENT_AGE_MAX_MS, toMs: receivedAt + EVENT_AHEAD_MAX_MS };
  const verdict = validateBatch(document, { window, sources });
  if (verdict.kind === 'fault' || verdict.accepted.length !== batch.sound.length)
    throw new Error('the validation of a simulated batch has an unexpected result');
  return {
    copies: verdict.accepted.map(({ message }) => ({ message, receivedAt, traceId })),
    rejections: verdict.rejected.flatMap(({ index, errors }) =>
      errors.map(({ code, field }) => ({ code, field, ...clientOf(document.messages[index]), receivedAt, traceId })),
    ),
  };
}

/** The client of a message, where stated in valid form. */
function clientOf(element: unknown): Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'> {
  const { surface, context } = (element ?? {}) as { surface?: unknown; context?: unknown };
  const { library, libraryVersion } = (context ?? {}) as { library?: unknown; libraryVersion?: unknown };
  const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, 64) : '');
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: textOf(library),
    libraryVersion: textOf(libraryVersion),
  };
}

/** Different messages with ids that exist already: with another time and name, or only another time. */
function createConflicts(copies: readonly AcceptedCopy[]): AcceptedCopy[] {
  return copies
    .filter(({ message }, index) => message.type === 'track' && index % CONFLICT_EVERY < 5)
    .map(({ message, receivedAt, traceId }, index) => {
      const eventName = index % 2 === 0 ? 'level_completed' : message.eventName;
      const other = { ...message, eventTime: message.eventTime - HOUR_MS, eventName } as Message;
      return { message: other, receivedAt: receivedAt + DAY_MS, traceId };
    });
}
