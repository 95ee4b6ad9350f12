import type { KeyVerifier } from '@playline/access-keys';
import { createHttpApp, type HttpApp } from '@playline/http';
import type { IdentityKeyer } from '@playline/identity';
import type { Logger, Metrics } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import { createAuthorise } from './authorise.ts';
import { createBytesInFlight } from './bytes-in-flight.ts';
import type { Config } from './config.ts';
import { createGatewayMetrics } from './metrics.ts';
import { createPublish } from './publish.ts';
import { createMessagesRoute } from './routes/messages/handler.ts';
import type { SchemaIds } from './schema-ids.ts';

/** What the gateway works with: settings and ports, no adapters. */
export interface GatewayParts {
  config: GatewaySettings;
  producer: Pick<Producer, 'send'>;
  /** Verifies publishable keys. */
  verifyPublishable: KeyVerifier;
  keyer: IdentityKeyer;
  schemaIds: () => SchemaIds | null;
  metrics: Metrics;
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
> & { PUBLIC_URL: string };

/** The whole gateway without its port: key, room, body, messages, brokers, answer. */
export function createGatewayApp({ config, logger, ...parts }: GatewayParts): HttpApp {
  const metrics = createGatewayMetrics(parts.metrics);
  const publishableKeyHeader = `${config.HTTP_HEADER_PREFIX}-publishable-key`;
  const messages = createMessagesRoute({
    authorise: createAuthorise(publishableKeyHeader, parts.verifyPublishable),
    bytesInFlight: createBytesInFlight(config.BYTES_IN_FLIGHT_MAX, metrics.onBytesInFlight),
    publish: createPublish({
      producer: parts.producer,
      deadlineMs: config.PUBLISH_DEADLINE_MS,
      onPublished: metrics.onPublished,
    }),
    keyer: parts.keyer,
    schemaIds: parts.schemaIds,
    topicPrefix: config.TOPIC_PREFIX,
    eventAgeMaxMs: config.EVENT_AGE_MAX_MS,
    eventAheadMaxMs: config.EVENT_AHEAD_MAX_MS,
    metrics,
  });
  return createHttpApp({
    routes: [messages],
    publishableKeyHeader,
    link: (code) => `${config.PUBLIC_URL}/docs/errors/${code}`,
    onAnswer: (_exchange, status) => metrics.onAnswer(status),
    onFault: (exchange, error) => logger.error({ traceId: exchange.traceId, error: causeOf(error) }, 'request failed'),
  });
}

/** What really happened; the public half says nothing that an operator does not know. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}
