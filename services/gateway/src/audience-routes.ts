import type { KeyVerifier } from '@playline/access-keys';
import { ID_CODE_POINTS_MAX, type IdentityKind, TOPICS } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type BytesInFlight, parseQuery, type Route, settleWithin, singleValueOf } from '@playline/http';
import {
  type ConsentStore,
  createRequestErasure,
  type ErasureGuards,
  type ErasureRequestToPublish,
  type IdentityGraph,
  type IdentityKeyer,
  type People,
  type RequestErasure,
  USER_KINDS,
} from '@playline/people';
import type { Producer } from '@playline/stream';
import { type Authorise, createAuthorise } from './authorise.ts';
import type { Config } from './config.ts';
import type { OperationCount } from './count-use.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limits/index.ts';
import {
  createConsentAuthorise,
  createReadConsentRoute,
  createStoreChange,
  createWriteConsentRoute,
} from './routes/tracking-consent/handler.ts';
import { assertIdentifies, requireText } from './text-field.ts';

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
  guards: Pick<ErasureGuards, 'place' | 'confirm' | 'release'>;
}

export interface AudienceRoutesParts {
  config: Pick<Config, 'HTTP_HEADER_PREFIX' | 'TOPIC_PREFIX' | 'PUBLISH_DEADLINE_MS' | 'ERASURE_CLOCK_SKEW_MS'>;
  audience: AudiencePorts;
  producer: Pick<Producer, 'sendPlaced'>;
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
    producer.sendPlaced({ topic, ...request }, { attemptsMaxMs: deadlineMs });
  const clockSkewMs = config.ERASURE_CLOCK_SKEW_MS;
  const requestErasure = createRequestErasure({ publish, people: audience.people, schemaId, clockSkewMs, onFault });
  return limits.failedKeys.show(count.route(createEraseRoute({ authorise, requestErasure, keyer, deadlineMs })));
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
