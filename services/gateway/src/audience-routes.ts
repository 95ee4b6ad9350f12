import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import {
  CONSENT_BYTES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  type ConsentRecord,
  type ConsentStatus,
  consentCodec,
  findTextError,
  frameRecord,
  ID_CODE_POINTS_MAX,
  type IdentityKind,
  parseJsonObject,
  TOPICS,
  toOptionError,
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
  createRequestErasure,
  type ErasureGuards,
  type IdentityGraph,
  type IdentityKeyer,
  isPlaceholder,
  type People,
  USER_KINDS,
} from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import { type Authorise, createAuthorise, type OperationCount } from './authorise.ts';
import type { Config } from './config.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limits/index.ts';

/** Ports for consent and erasure. */
export interface AudiencePorts {
  consents: Pick<ConsentStore, 'apply' | 'read'>;
  people: Pick<People, 'readEpoch'> & {
    graph: Pick<IdentityGraph, 'membersOf'>;
    guards: Pick<ErasureGuards, 'putHold' | 'confirmHold' | 'releaseHold'>;
  };
  verifySecret: KeyVerifier;
  /** Null until the registry has returned the ids. */
  schemaIds: () => Readonly<Record<'consents' | 'erasures', number>> | null;
}

export interface AudienceRoutesParts {
  config: Pick<Config, 'HTTP_HEADER_PREFIX' | 'TOPIC_PREFIX' | 'PUBLISH_DEADLINE_MS' | 'ERASURE_CLOCK_SKEW_MS'>;
  audience: AudiencePorts;
  producer: Pick<Producer, 'sendForOffset'>;
  keyer: IdentityKeyer;
  authorise: Authorise;
  limits: Pick<RateLimits, 'failedKeys' | 'consents'>;
  bytesInFlight: BytesInFlight;
  metrics: GatewayMetrics;
  count: OperationCount;
  /** Reports errors that do not affect the response. */
  onFault: (fault: unknown, message: string) => void;
}

/** Creates the consent routes (publishable key) and the erasure route (secret key). */
export function createAudienceRoutes(parts: AudienceRoutesParts): Route[] {
  const { count, limits } = parts;
  const consentParts = { ...parts, authorise: createConsentAuthorise(count.authorise(parts.authorise)) };
  const consents = [createReadConsentRoute(consentParts), createWriteConsentRoute(consentParts)];
  return [
    ...consents.map((route) => limits.consents(count.route(route))),
    limits.failedKeys.addHeaders(count.route(createEraseRoute(parts))),
  ];
}

function schemaIdOf({ schemaIds }: AudiencePorts, name: 'consents' | 'erasures'): number {
  const ids = schemaIds();
  if (ids !== null) return ids[name];
  throw new PublicError('INTERNAL_SERVER_ERROR', {
    cause: new Error('the registry has not returned the schema ids yet'),
  });
}

/** DELETE /v1/audience/data: contract, "Erasure". Sends no CORS headers, because browsers must not have secret keys. */
function createEraseRoute({ config, audience, limits, ...parts }: AudienceRoutesParts): Route {
  const { producer, keyer, count, onFault } = parts;
  const deadlineMs = config.PUBLISH_DEADLINE_MS;
  const verify = limits.failedKeys.guard(audience.verifySecret);
  const authorise = count.authorise(createAuthorise(`${config.HTTP_HEADER_PREFIX}-api-key`, verify));
  const topic = config.TOPIC_PREFIX + TOPICS.erasures.name;
  const requestErasure = createRequestErasure({
    publish: (request) => producer.sendForOffset({ topic, ...request }, { attemptsMaxMs: deadlineMs }),
    people: audience.people,
    schemaId: () => schemaIdOf(audience, 'erasures'),
    clockSkewMs: config.ERASURE_CLOCK_SKEW_MS,
    onFault,
  });
  return {
    method: 'DELETE',
    path: '/v1/audience/data',
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const { id, kinds, identity } = parseSubject(exchange.request.url ?? '');
      assertNotPlaceholder(id, kinds[0] === 'anonymous' ? 'anonymousId' : 'userId');
      const subjectKeys = kinds.map((kind) => keyer(environmentId, kind, id));
      const { traceId, traceparent } = exchange;
      // Continues after the deadline, because the hold of a request that is logged late must still be confirmed.
      const request = requestErasure({ environmentId, subjectKeys, traceId, traceparent });
      const erasureId = await settleWithin(deadlineMs, request);
      exchange.answerEmpty(202, ['x-erasure-id', erasureId, 'x-erasure-identity', identity]);
    },
  };
}

/**
 * Returns the id, every kind under which clients may have sent the id, and the parsed identity, percent-encoded.
 * @throws PublicError VALIDATION_ERROR unless the query has exactly one identifier: contract, "Subject"
 */
export function parseSubject(target: string) {
  const query = parseQuery(target);
  const [anonymousId, userId] = [singleValueOf(query, 'anonymousId'), singleValueOf(query, 'userId')];
  if ((anonymousId === undefined) === (userId === undefined))
    throw new PublicError('VALIDATION_ERROR', { message: 'Exactly one of anonymousId and userId is required.' });
  const field = anonymousId === undefined ? 'userId' : 'anonymousId';
  const id = requireText(anonymousId ?? userId, field);
  const kinds: readonly IdentityKind[] = anonymousId === undefined ? USER_KINDS : ['anonymous'];
  return { id, kinds, identity: `${field}=${encodeURIComponent(id)}` };
}

/** @throws PublicError VALIDATION_ERROR if the value is missing, blank, too long, or not a well-formed string */
function requireText(value: unknown, field: string, codePointsMax = ID_CODE_POINTS_MAX): string {
  const error = findTextError(value, codePointsMax);
  if (error !== null) throw invalidField(field, `${field} ${error}`);
  return value as string;
}

/**
 * Refuses placeholders, because a request for one would affect everyone whose client sends that placeholder.
 * @throws PublicError VALIDATION_ERROR
 */
function assertNotPlaceholder(id: string, field: string): void {
  if (isPlaceholder(id))
    throw invalidField(field, `${field} is a placeholder that many clients send. Send the id of one person`);
}

const CONSENT_PATH = '/v1/audience/tracking-consent';

/** GET /v1/audience/tracking-consent: contract, "Consent". */
function createReadConsentRoute({ authorise, audience, keyer, config }: AudienceRoutesParts): Route {
  return {
    method: 'GET',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const value = singleValueOf(parseQuery(exchange.request.url ?? ''), 'anonymousId');
      const anonymousId = requireText(value, 'anonymousId');
      const read = () => audience.consents.read(environmentId, keyer(environmentId, 'anonymous', anonymousId));
      // A placeholder does not identify anyone.
      const stored = isPlaceholder(anonymousId) ? null : await settleWithin(config.PUBLISH_DEADLINE_MS, read());
      const status: ConsentStatus = stored?.status ?? 'not_set';
      exchange.answer(200, JSON.stringify({ status }));
    },
  };
}

/** PUT /v1/audience/tracking-consent: contract, "Consent". */
function createWriteConsentRoute(parts: AudienceRoutesParts): Route {
  return {
    method: 'PUT',
    path: CONSENT_PATH,
    cors: true,
    handle: async (exchange) => {
      const { change, reservation } = await receiveChange(exchange, await parts.authorise(exchange), parts);
      // Continues after the deadline, because a logged change must reach the store.
      const stored = storeChange(change, exchange.traceparent, parts).finally(() => reservation.release());
      parts.metrics.onConsent(await settleWithin(parts.config.PUBLISH_DEADLINE_MS, stored));
      exchange.answerEmpty(204);
    },
  };
}

/** Reads the change from the body. Releases the reservation on failure. */
async function receiveChange(
  exchange: Exchange,
  { projectId, environmentId }: KeyRecord,
  { authorise, bytesInFlight, keyer }: AudienceRoutesParts,
): Promise<{ change: ConsentRecord; reservation: Reservation }> {
  const plan = planJsonBody(exchange.request, CONSENT_BYTES_MAX);
  const reservation = bytesInFlight.admit(projectId, plan.declaredBytes ?? CONSENT_BYTES_MAX);
  try {
    const body = await readBody(exchange.request, plan, { reservation });
    // The key may have been revoked while the body was arriving.
    await authorise(exchange);
    const { anonymousId, status, source } = parseConsentUpdate(body);
    assertNotPlaceholder(anonymousId, 'anonymousId');
    const identityKey = keyer(environmentId, 'anonymous', anonymousId);
    const { traceId } = exchange;
    return { change: { environmentId, identityKey, status, source, receivedAt: Date.now(), traceId }, reservation };
  } catch (error) {
    reservation.release();
    throw error;
  }
}

/**
 * Writes a change to the log, then to the store with its offset. Resolves when all in-sync replicas have the change and
 * the store has this change or a later one. The log is written first, because the store can be rebuilt from the log. No
 * attempt starts after the deadline, because it could overwrite a newer change from another gateway.
 */
async function storeChange(
  change: ConsentRecord,
  traceparent: string,
  { producer, audience, config }: AudienceRoutesParts,
): Promise<ApplyOutcome> {
  const { environmentId, identityKey, status, receivedAt } = change;
  const record = {
    topic: config.TOPIC_PREFIX + TOPICS.consents.name,
    key: Buffer.concat([Buffer.from(environmentId), identityKey]),
    value: frameRecord(schemaIdOf(audience, 'consents'), consentCodec.encode(change)),
    headers: { traceparent },
  };
  const attempts = { attemptsMaxMs: config.PUBLISH_DEADLINE_MS };
  const { partition, offset, loggedAtMs } = await producer.sendForOffset(record, attempts);
  const position = { partition, offset, loggedAtMs: loggedAtMs ?? receivedAt };
  return await audience.consents.apply({ environmentId, identityKey, status, receivedAt, position });
}

/** Converts 401 errors to 400, because consent operations have no 401: contract, "Invalid key". */
function createConsentAuthorise(authorise: Authorise): Authorise {
  return async (exchange) => {
    try {
      return await authorise(exchange);
    } catch (error) {
      if (!(error instanceof PublicError) || error.code !== 'UNAUTHORISED_REQUEST') throw error;
      throw new PublicError('VALIDATION_ERROR', { details: error.details, cause: error });
    }
  };
}

/** The statuses that a client can set. */
const SETTABLE_STATUSES = CONSENT_STATUSES.filter((status): status is ChosenStatus => status !== 'not_set');

/**
 * Contract, "UpdateTrackingConsentRequest".
 * @throws PublicError VALIDATION_ERROR, with `details.field` if a field is invalid
 */
export function parseConsentUpdate(body: Buffer): Pick<ConsentRecord, 'status' | 'source'> & { anonymousId: string } {
  const read = parseJsonObject(body);
  if (read.kind === 'refused') throw new PublicError('VALIDATION_ERROR', read);
  const anonymousId = requireText(read.object.anonymousId, 'anonymousId');
  const source = requireText(read.object.source, 'source', CONSENT_SOURCE_CODE_POINTS_MAX);
  const status = SETTABLE_STATUSES.find((value) => value === read.object.status);
  if (status === undefined) throw invalidField('status', `status ${toOptionError(SETTABLE_STATUSES)}`);
  return { anonymousId, source, status };
}

/** A quarter of the time after which an unconfirmed hold lapses. */
const SWEEP_INTERVAL_MS = 15_000;

/** Drops holds of gateways that stopped before they published the erasure request. */
export function startHoldSweep(guards: Pick<ErasureGuards, 'dropLapsedHolds'>, logger: Logger): Closable {
  const sweep = async () => {
    try {
      const dropped = await guards.dropLapsedHolds(Date.now());
      if (dropped > 0) logger.warn({ dropped }, 'unconfirmed erasure holds dropped');
    } catch (error) {
      logger.warn({ error }, 'dropping unconfirmed erasure holds failed; retrying in the next sweep');
    }
  };
  const timer = setInterval(() => void sweep(), SWEEP_INTERVAL_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
