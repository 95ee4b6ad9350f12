import type { KeyVerifier } from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { BytesInFlight, Route } from '@playline/http';
import {
  type ConsentStore,
  createRequestErasure,
  type ErasureGuards,
  type ErasureRequestToPublish,
  type IdentityGraph,
  type IdentityKeyer,
  type People,
} from '@playline/people';
import type { Producer } from '@playline/stream';
import { type Authorise, createAuthorise } from './authorise.ts';
import type { Config } from './config.ts';
import type { OperationCount } from './count-use.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limits/index.ts';
import { createEraseRoute } from './routes/audience-data/handler.ts';
import {
  createConsentAuthorise,
  createReadConsentRoute,
  createStoreChange,
  createWriteConsentRoute,
} from './routes/tracking-consent/handler.ts';

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
