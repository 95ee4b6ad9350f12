import type { KeyLookup, KeyRecord, KeyVerifier, UsageCounter } from '@playline/access-keys';
import { createDocsRoutes as createRoutes, errorPath } from '@playline/api-docs';
import {
  createBytesInFlight,
  createFailureLog,
  createHttpApp,
  createRequestDurations,
  type HttpApp,
  type ReadinessChecks,
  type Route,
} from '@playline/http';
import type { Utf8IdentityKeyer } from '@playline/people';
import type { Logger, Metrics, Tracing } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import { type AudiencePorts, createAudienceRoutes } from './audience-routes.ts';
import { createAuthorise, createOperationCount, KEY_ENDED, ORIGIN_NOT_ALLOWED } from './authorise.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { Config } from './config.ts';
import type { DocsSettings } from './docs/examples.ts';
import { createGatewayDocs } from './docs/source.ts';
import { createGatewayMetrics } from './metrics.ts';
import { createPublish } from './publish.ts';
import { createRateLimits, type RateLimitParts } from './rate-limits/index.ts';
import type { RateLimitSettings } from './rate-limits/settings.ts';
import type { PublishRejections } from './rejections.ts';
import { createMessagesRoute } from './routes/messages/handler.ts';
import type { SchemaIds } from './schema-ids.ts';

export interface GatewayParts {
  config: GatewaySettings;
  producer: Pick<Producer, 'send' | 'sendForOffset'>;
  publishRejections: PublishRejections;
  audience: AudiencePorts;
  verifyPublishable: KeyVerifier;
  findEnded: KeyLookup<KeyRecord>['findEnded'];
  /** Counts messages across all gateways. */
  limiter: RateLimitParts['limiter'];
  ratesOf: RateLimitParts['ratesOf'];
  keyer: Utf8IdentityKeyer;
  schemaIds: () => SchemaIds | null;
  clock: Pick<ClockWatch, 'guard'>;
  usage: Pick<UsageCounter, 'used' | 'refused'>;
  docs: readonly Route[];
  metrics: Metrics;
  tracing: Tracing | null;
  logger: Logger;
}

export type GatewaySettings = Pick<
  Config,
  | 'HTTP_HEADER_PREFIX'
  | 'TOPIC_PREFIX'
  | 'BYTES_IN_FLIGHT_MAX'
  | 'PUBLISH_DEADLINE_MS'
  | 'EVENT_AGE_MAX_MS'
  | 'EVENT_AHEAD_MAX_MS'
  | 'ERASURE_CLOCK_SKEW_MS'
  | 'CLIENT_LIBRARIES'
> &
  RateLimitSettings & { PUBLIC_URL: string };

/** Creates the gateway without a listener. */
export function createGatewayApp({ config, logger, ...parts }: GatewayParts): HttpApp {
  const metrics = createGatewayMetrics(parts.metrics);
  const publishableKeyHeader = `${config.HTTP_HEADER_PREFIX}-publishable-key`;
  const onInvalidKey: RateLimitParts['onInvalidKey'] = (text, { traceId }) => {
    const key = parts.findEnded(text);
    if (key !== null) parts.usage.refused(key, { reason: KEY_ENDED, traceId });
  };
  const limits = createRateLimits({ ...parts, settings: config, onInvalidKey });
  const authorise = createAuthorise(
    publishableKeyHeader,
    limits.failedKeys.guard(parts.verifyPublishable),
    (key, { traceId }) => parts.usage.refused(key, { reason: ORIGIN_NOT_ALLOWED, traceId }),
  );
  const bytesInFlight = createBytesInFlight(config.BYTES_IN_FLIGHT_MAX);
  // Read only when metrics are collected, because the value changes four times per request.
  const help = 'Bytes received and not yet acknowledged by the brokers';
  const collect: Parameters<Metrics['collectedGauge']>[2]['collect'] = (gauge) => gauge.set(bytesInFlight.used);
  parts.metrics.collectedGauge('playline_gateway_in_flight_bytes', help, { collect });
  const messages = createMessagesRoute({
    authorise,
    limit: limits.messages,
    bytesInFlight,
    publish: createPublish({
      producer: parts.producer,
      deadlineMs: config.PUBLISH_DEADLINE_MS,
      onPublished: metrics.onPublished,
    }),
    publishRejections: parts.publishRejections,
    keyer: parts.keyer,
    schemaIds: parts.schemaIds,
    topicPrefix: config.TOPIC_PREFIX,
    eventAgeMaxMs: config.EVENT_AGE_MAX_MS,
    eventAheadMaxMs: config.EVENT_AHEAD_MAX_MS,
    libraries: new Set(config.CLIENT_LIBRARIES),
    metrics,
    usage: parts.usage,
  });
  const onFault = (error: unknown, message: string) => logger.warn({ error }, message);
  const shared = { config, ...parts, authorise, limits, bytesInFlight, metrics, onFault };
  const audience = createAudienceRoutes({ ...shared, count: createOperationCount(parts.usage) });
  return createHttpApp({
    routes: [...[limits.failedKeys.addHeaders(messages), ...audience].map(parts.clock.guard), ...parts.docs],
    publishableKeyHeader,
    link: (code) => config.PUBLIC_URL + errorPath(code),
    tracing: parts.tracing,
    onAnswer: createRequestDurations(parts.metrics),
    onFailure: createFailureLog({ logger }),
  });
}

export function createDocsRoutes(settings: DocsSettings, clocks?: Parameters<typeof createRoutes>[1]): Route[] {
  return createRoutes((nowMs) => createGatewayDocs({ ...settings, nowMs }), clocks);
}

interface ReadinessParts {
  producer: Pick<Producer, 'ready'>;
  schemas: { current(): unknown };
  keys: { ready(): Promise<boolean> };
  clock: Pick<ClockWatch, 'fault'>;
  /** False during a drain. */
  accepting: () => boolean;
}

/** Creates the checks for `/readyz`. After the first successful read, the keys stay ready during a Redis outage. */
export function createReadiness({ producer, schemas, keys, clock, accepting }: ReadinessParts): ReadinessChecks {
  let areKeysLoaded = false;
  return {
    accepting,
    broker: () => producer.ready(),
    schemas: () => schemas.current() !== null,
    clock: () => clock.fault() === null,
    keys: async () => {
      areKeysLoaded ||= await keys.ready();
      return areKeysLoaded;
    },
  };
}
