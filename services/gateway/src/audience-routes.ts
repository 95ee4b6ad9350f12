import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import {
  CONSENT_BYTES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  type ConsentRecord,
  type ConsentStatus,
  consentCodec,
  frameRecord,
  hasCodePointsAtMost,
  ID_CODE_POINTS_MAX,
  type IdentityKind,
  isBlank,
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
  createRequestErasure,
  type ErasureGuards,
  type ErasureRequestToPublish,
  type IdentityGraph,
  type IdentityKeyer,
  isPlaceholder,
  type People,
  type RequestErasure,
  USER_KINDS,
} from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import { type Authorise, createAuthorise, type OperationCount } from './authorise.ts';
import type { Config } from './config.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limits/index.ts';

/** Ports of the operations on one identity: its consent and its erasure. */
export interface AudiencePorts {
  /** Kept up to date with their topic. */
  consents: Pick<ConsentStore, 'apply' | 'read'>;
  /** The identity graph, holds and erasure requests. */
  people: AudiencePeople;
  /** Verifies secret keys. */
  verifySecret: KeyVerifier;
  /** Ids of the schemas of consents and erasures; null until the registry has answered. */
  schemaIds: () => Readonly<Record<'consents' | 'erasures', number>> | null;
}

export interface AudiencePeople extends Pick<People, 'readEpoch' | 'ready' | 'takesWrites'> {
  graph: Pick<IdentityGraph, 'membersOf'>;
  guards: Pick<ErasureGuards, 'putHold' | 'confirmHold' | 'releaseHold'>;
}

export interface AudienceRoutesParts {
  config: Pick<Config, 'HTTP_HEADER_PREFIX' | 'TOPIC_PREFIX' | 'PUBLISH_DEADLINE_MS' | 'ERASURE_CLOCK_SKEW_MS'>;
  audience: AudiencePorts;
  producer: Pick<Producer, 'sendForOffset'>;
  keyer: IdentityKeyer;
  /** The check of the publishable key. */
  authorise: Authorise;
  limits: Pick<RateLimits, 'failedKeys' | 'consents'>;
  bytesInFlight: BytesInFlight;
  metrics: GatewayMetrics;
  /** Counts the use of both kinds of keys. */
  count: OperationCount;
  /** Called with faults that do not change the answer. */
  onFault: (fault: unknown, words: string) => void;
}

/** Assembles the operations on one identity: its consent (publishable key) and its erasure (secret key). */
export function createAudienceRoutes(parts: AudienceRoutesParts): Route[] {
  return [...createConsentRoutes(parts), createErasureRoute(parts)];
}

function createConsentRoutes({ config, audience, limits, ...parts }: AudienceRoutesParts): Route[] {
  const { producer, keyer, bytesInFlight, metrics, count } = parts;
  const { consents } = audience;
  const authorise = createConsentAuthorise(count.authorise(parts.authorise));
  const deadlineMs = config.PUBLISH_DEADLINE_MS;
  const schemaId = schemaIdOf(audience, 'consents');
  const storeChange = createStoreChange({ producer, consents, schemaId, topicPrefix: config.TOPIC_PREFIX, deadlineMs });
  const onStored = metrics.onConsent;
  const routes = [
    createReadConsentRoute({ authorise, consents, keyer, deadlineMs }),
    createWriteConsentRoute({ authorise, bytesInFlight, storeChange, keyer, deadlineMs, onStored }),
  ];
  return routes.map((route) => limits.consents(count.route(route)));
}

function createErasureRoute({ config, audience, limits, ...parts }: AudienceRoutesParts): Route {
  const { producer, keyer, count, onFault } = parts;
  const verify = limits.failedKeys.guard(audience.verifySecret);
  const authorise = count.authorise(createAuthorise(`${config.HTTP_HEADER_PREFIX}-api-key`, verify));
  const schemaId = schemaIdOf(audience, 'erasures');
  const topic = config.TOPIC_PREFIX + TOPICS.erasures.name;
  const deadlineMs = config.PUBLISH_DEADLINE_MS;
  const publish = (request: ErasureRequestToPublish) =>
    producer.sendForOffset({ topic, ...request }, { attemptsMaxMs: deadlineMs });
  const clockSkewMs = config.ERASURE_CLOCK_SKEW_MS;
  const requestErasure = createRequestErasure({ publish, people: audience.people, schemaId, clockSkewMs, onFault });
  return limits.failedKeys.addHeaders(count.route(createEraseRoute({ authorise, requestErasure, keyer, deadlineMs })));
}

function schemaIdOf({ schemaIds }: AudiencePorts, name: 'consents' | 'erasures'): () => number {
  return () => {
    const ids = schemaIds();
    if (ids !== null) return ids[name];
    throw new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error('the schema ids are not known yet') });
  };
}

interface EraseRouteParts {
  /** Accepts secret keys only. */
  authorise: Authorise;
  requestErasure: RequestErasure;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/**
 * DELETE /v1/audience/data: contract, "Erasure". It takes a secret key, so
 * it has no CORS headers: no browser may call it.
 */
function createEraseRoute({ authorise, requestErasure, keyer, deadlineMs }: EraseRouteParts): Route {
  return {
    method: 'DELETE',
    path: '/v1/audience/data',
    handle: async (exchange) => {
      const { environmentId } = await authorise(exchange);
      const { id, kinds, identity } = parseSubject(exchange.request.url ?? '');
      assertIdentifies(id, kinds[0] === 'anonymous' ? 'anonymousId' : 'userId');
      const subjectKeys = kinds.map((kind) => keyer(environmentId, kind, id));
      const { traceId, traceparent } = exchange;
      // The work goes on after the deadline: a request that reaches the topic late still needs its hold confirmed.
      const wanted = { environmentId, subjectKeys, traceId, traceparent };
      const erasureId = await settleWithin(deadlineMs, requestErasure(wanted));
      exchange.answerEmpty(202, ['x-erasure-id', erasureId, 'x-erasure-identity', identity]);
    },
  };
}

/** The subject of an erasure: one id, and every kind that it may have been sent under. */
interface Subject {
  readonly id: string;
  readonly kinds: readonly IdentityKind[];
  /** The parameter that the service read, percent-encoded: a `+` that was sent unencoded is a `%20` here. */
  readonly identity: string;
}

/**
 * Reads the subject of an erasure from the request target.
 * @throws PublicError VALIDATION_ERROR unless exactly one of the two identifiers is given, once, not blank and not too
 *   long: contract, "Subject"
 */
export function parseSubject(target: string): Subject {
  const query = parseQuery(target);
  const anonymousId = singleValueOf(query, 'anonymousId');
  const userId = singleValueOf(query, 'userId');
  if (anonymousId !== undefined && userId !== undefined) throw invalid('Give either anonymousId or userId, not both.');
  if (anonymousId !== undefined) return toSubject('anonymousId', anonymousId, ['anonymous']);
  if (userId !== undefined) return toSubject('userId', userId, USER_KINDS);
  throw invalid('Give either anonymousId or userId.');
}

function toSubject(field: string, value: string, kinds: readonly IdentityKind[]): Subject {
  const id = requireText(value, { field, codePointsMax: ID_CODE_POINTS_MAX });
  return { id, kinds, identity: `${field}=${encodeURIComponent(id)}` };
}

function invalid(message: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message });
}

/**
 * The text of a required field.
 * @throws PublicError VALIDATION_ERROR when it is absent, null, blank, not a string, not valid Unicode or too long
 */
function requireText(value: unknown, { field, codePointsMax }: { field: string; codePointsMax: number }): string {
  if (value === undefined || value === null) throw invalidField(field, `${field} is required`);
  if (typeof value !== 'string') throw invalidField(field, `${field} must be a string`);
  if (isBlank(value)) throw invalidField(field, `${field} is required`);
  if (!value.isWellFormed()) throw invalidField(field, `${field} holds a lone surrogate`);
  if (!hasCodePointsAtMost(value, codePointsMax))
    throw invalidField(field, `${field} is longer than ${codePointsMax} characters`);
  return value;
}

/**
 * Refuses a request about a placeholder, because it would be about everybody whose client sends it.
 * @throws PublicError VALIDATION_ERROR
 */
function assertIdentifies(id: string, field: string): void {
  if (isPlaceholder(id))
    throw invalidField(field, `${field} is a placeholder that many clients send, not an id. Send the id of one person`);
}

const CONSENT_PATH = '/v1/audience/tracking-consent';

interface ReadConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  consents: Pick<ConsentStore, 'read'>;
  keyer: IdentityKeyer;
  deadlineMs: number;
}

/** GET /v1/audience/tracking-consent: contract, "Consent". */
function createReadConsentRoute({ authorise, consents, keyer, deadlineMs }: ReadConsentParts): Route {
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

interface WriteConsentParts {
  /** Answers an invalid key with 400. */
  authorise: Authorise;
  bytesInFlight: BytesInFlight;
  storeChange: StoreChange;
  keyer: IdentityKeyer;
  deadlineMs: number;
  onStored: (outcome: ApplyOutcome) => void;
}

/** PUT /v1/audience/tracking-consent: contract, "Consent". */
function createWriteConsentRoute(parts: WriteConsentParts): Route {
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

interface StoreChangeParts {
  producer: Pick<Producer, 'sendForOffset'>;
  consents: Pick<ConsentStore, 'apply'>;
  /** @throws PublicError INTERNAL_SERVER_ERROR while the id is unknown */
  schemaId: () => number;
  topicPrefix: string;
  /** When the request is answered at the latest. */
  deadlineMs: number;
}

/** Writes one change to the log, then to the store under its place in the log. */
type StoreChange = (change: ConsentRecord, traceparent: string) => Promise<ApplyOutcome>;

/**
 * Builds the writer of changes. The guarantee of the 204: it resolves only after every in-sync replica has the change
 * and the store has it or a later one. The log comes first, because a change that only the store lacks can be sent
 * again or rebuilt from the log. In the other order the store could show a change that the log never had.
 *
 * No attempt begins after the deadline. The caller then has its 500, and an attempt could put the change behind a newer
 * one of another gateway, which it would replace.
 */
function createStoreChange(parts: StoreChangeParts): StoreChange {
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
    const { partition, offset, loggedAtMs } = await producer.sendForOffset(record, { attemptsMaxMs: deadlineMs });
    const place = { partition, offset, loggedAtMs: loggedAtMs ?? receivedAt };
    return await consents.apply({ environmentId, identityKey, status, receivedAt, position: place });
  };
}

/**
 * The key check of the consent operations. They list only 400 and 500, so an invalid key is VALIDATION_ERROR with the
 * header's name: contract, "Invalid key".
 */
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

/** A requested change: contract, "UpdateTrackingConsentRequest". */
interface WantedConsent {
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

/** A quarter of the time after which a hold lapses. Links wait at most this much longer. */
const SWEEP_INTERVAL_MS = 15_000;

/** Drops abandoned holds every 15 s. A gateway that ends before it publishes the request leaves its hold behind. */
export function openHoldSweep(guards: Pick<ErasureGuards, 'dropLapsedHolds'>, logger: Logger): Closable {
  const sweep = async () => {
    try {
      const dropped = await guards.dropLapsedHolds(Date.now());
      if (dropped > 0) logger.warn({ dropped }, 'holds of erasures lapsed: their requests never reached the log');
    } catch (error) {
      logger.warn({ error }, 'lapsed holds could not be dropped; the next sweep tries again');
    }
  };
  const timer = setInterval(() => void sweep(), SWEEP_INTERVAL_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
