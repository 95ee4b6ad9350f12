import { isUtf8 } from 'node:buffer';
import {
  CONSENT_BYTES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  type ConsentRecord,
  type ConsentStatus,
  consentCodec,
  frameRecord,
  ID_CODE_POINTS_MAX,
  TOPICS,
} from '@playline/contracts';
import { invalidField, PublicError } from '@playline/errors';
import {
  type BytesInFlight,
  type Exchange,
  parseQuery,
  planJsonBody,
  type Reservation,
  type Route,
  readBody,
  settleWithin,
  singleValueOf,
} from '@playline/http';
import type { ApplyOutcome, ChosenStatus, ConsentStore, IdentityKeyer } from '@playline/people';
import type { Producer } from '@playline/stream';
import type { Authorise } from '../../authorise.ts';
import { requireText } from '../../text-field.ts';

const CONSENT_PATH = '/v1/audience/tracking-consent';

export interface ReadConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  consents: Pick<ConsentStore, 'read'>;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/** GET /v1/audience/tracking-consent: contract, "Consent". */
export function createReadConsentRoute({ authorise, consents, keyer, deadlineMs }: ReadConsentParts): Route {
  return {
    method: 'GET',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const given = singleValueOf(parseQuery(exchange.request.url ?? ''), 'anonymousId');
      const anonymousId = requireText(given, { field: 'anonymousId', codePointsMax: ID_CODE_POINTS_MAX });
      const key = keyer(environmentId, 'anonymous', anonymousId);
      const stored = await settleWithin(deadlineMs, consents.read(environmentId, key));
      const status: ConsentStatus = stored?.status ?? 'not_set';
      exchange.answer(200, JSON.stringify({ status }));
    },
  };
}

export interface WriteConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  bytesInFlight: BytesInFlight;
  storeChange: StoreChange;
  keyer: IdentityKeyer;
  deadlineMs: number;
  onStored: (outcome: ApplyOutcome) => void;
}

/** PUT /v1/audience/tracking-consent: contract, "Consent". */
export function createWriteConsentRoute(parts: WriteConsentParts): Route {
  const receive = createReceive(parts);
  return {
    method: 'PUT',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { environmentId } = await parts.authorise(exchange);
      const { change, reservation } = await receive(exchange, environmentId);
      // The work goes on after the deadline: a change that reached the log must reach the store too.
      const stored = parts.storeChange(change, exchange.traceparent).finally(() => reservation.release());
      parts.onStored(await settleWithin(parts.deadlineMs, stored));
      exchange.answerEmpty(204);
    },
  };
}

/** Builds the step from body to change. When it fails, the room is freed, since nothing is published yet. */
function createReceive({ bytesInFlight, keyer }: WriteConsentParts) {
  return async (
    exchange: Exchange,
    environmentId: string,
  ): Promise<{ change: ConsentRecord; reservation: Reservation }> => {
    const plan = planJsonBody(exchange.request, CONSENT_BYTES_MAX);
    const reservation = bytesInFlight.admit(environmentId, plan.declaredBytes ?? CONSENT_BYTES_MAX);
    try {
      const body = await readBody(exchange.request, plan, { reservation });
      const { anonymousId, status, source } = parseWantedConsent(body);
      const identityKey = keyer(environmentId, 'anonymous', anonymousId);
      const { traceId } = exchange;
      return { change: { environmentId, identityKey, status, source, receivedAt: Date.now(), traceId }, reservation };
    } catch (error) {
      reservation.release();
      throw error;
    }
  };
}

export interface StoreChangeParts {
  producer: Pick<Producer, 'sendPlaced'>;
  consents: Pick<ConsentStore, 'apply'>;
  /** @throws PublicError INTERNAL_SERVER_ERROR while the id is unknown */
  schemaId: () => number;
  topicPrefix: string;
}

/** Writes one change to the log, then to the store under its place in the log. */
export type StoreChange = (change: ConsentRecord, traceparent: string) => Promise<ApplyOutcome>;

/**
 * Builds the writer of changes. The guarantee of the 204: it resolves only after every in-sync replica has the change
 * and the store has it or a later one. The log comes first, because a change that only the store lacks can be sent
 * again or rebuilt from the log. In the other order the store could show a change that the log never had.
 */
export function createStoreChange({ producer, consents, schemaId, topicPrefix }: StoreChangeParts): StoreChange {
  const topic = topicPrefix + TOPICS.consents.name;
  return async (change, traceparent) => {
    const { environmentId, identityKey, status, receivedAt } = change;
    const { partition, offset, loggedAtMs } = await producer.sendPlaced({
      topic,
      key: Buffer.concat([Buffer.from(environmentId), identityKey]),
      value: frameRecord(schemaId(), consentCodec.encode(change)),
      headers: { traceparent },
    });
    const place = { partition, offset, loggedAtMs: loggedAtMs ?? receivedAt };
    return await consents.apply({ environmentId, identityKey, status, receivedAt, place });
  };
}

/**
 * The key check of the consent operations. They list only 400 and 500, so an invalid key is VALIDATION_ERROR with the
 * header's name: contract, "Invalid key".
 */
export function createConsentAuthorise(authorise: Authorise): Authorise {
  return async (exchange) => {
    try {
      return await authorise(exchange);
    } catch (error) {
      if (!(error instanceof PublicError) || error.code !== 'UNAUTHORISED_REQUEST') throw error;
      throw new PublicError('VALIDATION_ERROR', { details: error.details, cause: error });
    }
  };
}

/** A requested change: contract, "UpdateTrackingConsentRequest". */
export interface WantedConsent {
  readonly anonymousId: string;
  readonly status: ChosenStatus;
  readonly source: string;
}

const CHOSEN_STATUSES = CONSENT_STATUSES.filter((status): status is ChosenStatus => status !== 'not_set');
const isChosenStatus = (value: unknown): value is ChosenStatus => CHOSEN_STATUSES.some((status) => status === value);

/**
 * Reads the body of a change. Unknown members are ignored.
 * @throws PublicError VALIDATION_ERROR, with `details.field` where one member is at fault
 */
export function parseWantedConsent(body: Buffer): WantedConsent {
  const { anonymousId, status, source } = parseObject(body);
  const wanted = {
    anonymousId: requireText(anonymousId, { field: 'anonymousId', codePointsMax: ID_CODE_POINTS_MAX }),
    source: requireText(source, { field: 'source', codePointsMax: CONSENT_SOURCE_CODE_POINTS_MAX }),
  };
  // `not_set` is the absence of a choice: it can be read, not written.
  if (!isChosenStatus(status)) throw invalidField('status', 'status must be none, anonymous or full');
  return { ...wanted, status };
}

function parseObject(body: Buffer): Record<string, unknown> {
  let document: unknown;
  try {
    // Decoding would replace invalid bytes by U+FFFD and so store text that nobody sent.
    document = isUtf8(body) ? JSON.parse(body.toString('utf8')) : undefined;
  } catch {
    document = undefined;
  }
  if (document === undefined)
    throw new PublicError('VALIDATION_ERROR', { message: 'The body is not valid UTF-8 JSON.' });
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new PublicError('VALIDATION_ERROR', { message: 'The body must be a JSON object.' });
  return document as Record<string, unknown>;
}
