import type { KeyRecord } from '@playline/access-keys';
import {
  CONSENT_BYTES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  type ConsentRecord,
  type ConsentStatus,
  consentCodec,
  frameRecord,
  ID_CODE_POINTS_MAX,
  parseJsonObject,
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
import {
  type ApplyOutcome,
  type ChosenStatus,
  type ConsentStore,
  type IdentityKeyer,
  isPlaceholder,
} from '@playline/people';
import type { Producer } from '@playline/stream';
import type { Authorise } from '../../authorise.ts';
import { assertIdentifies, requireText } from '../../text-field.ts';

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
      // Nobody has such an id, so nobody has chosen anything under it.
      const stored = isPlaceholder(anonymousId)
        ? null
        : await settleWithin(deadlineMs, consents.read(environmentId, keyer(environmentId, 'anonymous', anonymousId)));
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
      const { change, reservation } = await receive(exchange, await parts.authorise(exchange));
      // The work goes on after the deadline: a change that reached the log must reach the store too.
      const stored = parts.storeChange(change, exchange.traceparent).finally(() => reservation.release());
      parts.onStored(await settleWithin(parts.deadlineMs, stored));
      exchange.answerEmpty(204);
    },
  };
}

/** Builds the step from body to change. When it fails, the room is freed, since nothing is published yet. */
function createReceive({ authorise, bytesInFlight, keyer }: WriteConsentParts) {
  return async (
    exchange: Exchange,
    { projectId, environmentId }: KeyRecord,
  ): Promise<{ change: ConsentRecord; reservation: Reservation }> => {
    const plan = planJsonBody(exchange.request, CONSENT_BYTES_MAX);
    const reservation = bytesInFlight.admit(projectId, plan.declaredBytes ?? CONSENT_BYTES_MAX);
    try {
      const body = await readBody(exchange.request, plan, { reservation });
      // The key may have ended while the body arrived.
      await authorise(exchange);
      const { anonymousId, status, source } = parseWantedConsent(body);
      assertIdentifies(anonymousId, 'anonymousId');
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
  /** When the request is answered at the latest. */
  deadlineMs: number;
}

/** Writes one change to the log, then to the store under its place in the log. */
export type StoreChange = (change: ConsentRecord, traceparent: string) => Promise<ApplyOutcome>;

/**
 * Builds the writer of changes. The guarantee of the 204: it resolves only after every in-sync replica has the change
 * and the store has it or a later one. The log comes first, because a change that only the store lacks can be sent
 * again or rebuilt from the log. In the other order the store could show a change that the log never had.
 *
 * No attempt begins after the deadline. The caller then has its 500, and an attempt could put the change behind a newer
 * one of another gateway, which it would replace.
 */
export function createStoreChange(parts: StoreChangeParts): StoreChange {
  const { producer, consents, schemaId, topicPrefix, deadlineMs } = parts;
  const topic = topicPrefix + TOPICS.consents.name;
  return async (change, traceparent) => {
    const { environmentId, identityKey, status, receivedAt } = change;
    const record = {
      topic,
      key: Buffer.concat([Buffer.from(environmentId), identityKey]),
      value: frameRecord(schemaId(), consentCodec.encode(change)),
      headers: { traceparent },
    };
    const { partition, offset, loggedAtMs } = await producer.sendPlaced(record, { attemptsMaxMs: deadlineMs });
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
  const read = parseJsonObject(body);
  if (read.kind === 'refused') throw new PublicError('VALIDATION_ERROR', read);
  const { anonymousId, status, source } = read.object;
  const wanted = {
    anonymousId: requireText(anonymousId, { field: 'anonymousId', codePointsMax: ID_CODE_POINTS_MAX }),
    source: requireText(source, { field: 'source', codePointsMax: CONSENT_SOURCE_CODE_POINTS_MAX }),
  };
  // `not_set` is the absence of a choice: it can be read, not written.
  if (!isChosenStatus(status)) throw invalidField('status', 'status must be none, anonymous or full');
  return { ...wanted, status };
}
