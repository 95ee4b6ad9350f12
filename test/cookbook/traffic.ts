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
import { createPersonTracker } from '../simulate/game/persons.ts';
import { type Batch, createTraffic, type Traffic } from '../simulate/game/traffic.ts';
import { createLedger } from '../simulate/run.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Includes a week before and after the time range of the recipes, with events that recipes must not count. */
const FROM_MS = Date.parse('2026-06-01T00:00:00Z');
const TO_MS = Date.parse('2026-07-20T00:00:00Z');
const [PLAYERS, BATCHES, BROKEN_RATE] = [70, 420, 0.05];
/** A client that did not receive the response resends the batch after this time. */
const RESEND_MS = 5_000;
/** Determines how often a different message reuses an existing message id. */
const CONFLICT_EVERY = 150;
const SESSION_END_RATE = 0.5;

/** A message as accepted by a gateway. Resent messages have several copies. */
export interface AcceptedCopy {
  readonly message: Message;
  readonly receivedAt: number;
  readonly traceId: string;
}

/** Several weeks of traffic, with the persons behind the ids. */
export interface SimulatedTraffic {
  readonly copies: readonly AcceptedCopy[];
  readonly rejections: readonly Omit<RejectionRecord, 'environmentId'>[];
  /** Every identity that owns a message or was linked. */
  readonly identities: readonly Identity[];
  readonly persons: PersonsModel;
}

/** Simulates seven weeks of traffic. Seed, ids and times are fixed, so the result is always the same. */
export function createSimulatedTraffic(): SimulatedTraffic {
  const run = { seed: 13, tag: '0123456789ab', startedAtMs: FROM_MS };
  const [random, ledger, people] = [createRandom(run.seed), createLedger(), createPersonTracker()];
  const traffic = createTraffic({ run, players: PLAYERS, brokenFraction: BROKEN_RATE, ledger });
  const copies: AcceptedCopy[] = [];
  const rejections: Omit<RejectionRecord, 'environmentId'>[] = [];
  const identities = new Map<string, Identity>();
  const add = (identity: Identity) => identities.set(`${identity.kind} ${identity.id}`, identity);
  for (let number = 0; number < BATCHES; number++) {
    const nowMs = FROM_MS + Math.floor(((TO_MS - FROM_MS) * number) / BATCHES) + random.integer(0, HOUR_MS);
    endSessions(traffic, random);
    const batch = traffic.next(nowMs);
    for (const valid of batch.valid) {
      people.accept(batch.household, valid);
      for (const identity of [valid.owner, valid.fact?.from, valid.fact?.to]) if (identity) add(identity);
    }
    for (const receivedAt of batch.resent || batch.responseLost ? [nowMs, nowMs + RESEND_MS] : [nowMs]) {
      const result = validate(batch, receivedAt, random.hex(32));
      copies.push(...result.copies);
      rejections.push(...result.rejections);
    }
  }
  return {
    copies: [...copies, ...createConflicts(copies)],
    rejections,
    identities: [...identities.values()],
    persons: people.model,
  };
}

/** Makes some devices start a new session between two batches. */
function endSessions({ households }: Traffic, random: Random): void {
  for (const { devices } of households)
    for (const device of devices) if (random.chance(SESSION_END_RATE)) device.sessionId = random.hex(32);
}

/** Accepts and rejects messages like the gateway. */
function validate(batch: Batch, receivedAt: number, traceId: string): Pick<SimulatedTraffic, 'copies' | 'rejections'> {
  const document = JSON.parse(batch.body) as { messages: unknown[] };
  const sources = document.messages.map((element) => ({
    bytes: Buffer.byteLength(JSON.stringify(element)),
    messageIdText: JSON.stringify((element as { messageId?: unknown } | null)?.messageId) ?? '',
  }));
  const window = { fromMs: receivedAt - EVENT_AGE_MAX_MS, toMs: receivedAt + EVENT_AHEAD_MAX_MS };
  const result = validateBatch(document, { window, sources });
  if (result.kind === 'refused' || result.accepted.length !== batch.valid.length)
    throw new Error('unexpected validation result for a simulated batch');
  return {
    copies: result.accepted.map(({ message }) => ({ message, receivedAt, traceId })),
    rejections: result.rejected.flatMap(({ index, errors }) =>
      errors.map(({ code, field }) => ({
        code,
        field,
        ...readClient(document.messages[index]),
        receivedAt,
        traceId,
        messageIndex: index,
      })),
    ),
  };
}

/** Reads the client of a message from its valid fields. */
function readClient(element: unknown): Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'> {
  const { surface, context } = (element ?? {}) as { surface?: unknown; context?: unknown };
  const { library, libraryVersion } = (context ?? {}) as { library?: unknown; libraryVersion?: unknown };
  const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, 64) : '');
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: textOf(library),
    libraryVersion: textOf(libraryVersion),
  };
}

/** Creates messages that reuse existing ids with a different time, and half of them with a different name. */
function createConflicts(copies: readonly AcceptedCopy[]): AcceptedCopy[] {
  return copies
    .filter(({ message }, index) => message.type === 'track' && index % CONFLICT_EVERY < 5)
    .map(({ message, receivedAt, traceId }, index) => {
      const eventName = index % 2 === 0 ? 'level_completed' : message.eventName;
      const conflicting = { ...message, eventTime: message.eventTime - HOUR_MS, eventName } as Message;
      return { message: conflicting, receivedAt: receivedAt + DAY_MS, traceId };
    });
}
