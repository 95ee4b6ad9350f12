import { randomBytes } from 'node:crypto';
import { createUsageCounter } from '@playline/access-keys';
import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS } from '@playline/contracts';
import { createBytesInFlight, createHttpApp, openHttpServer } from '@playline/http';
import { createIdentityKeyer } from '@playline/people';
import { createMetrics } from '@playline/runtime';
import type { OutgoingRecord } from '@playline/stream';
import { createGatewayMetrics } from '../../../services/gateway/src/metrics.ts';
import { createPublish } from '../../../services/gateway/src/publish.ts';
import { createPublishRejections } from '../../../services/gateway/src/rejections.ts';
import { createMessagesRoute } from '../../../services/gateway/src/routes/messages/handler.ts';

const BYTES_MAX = 64 * 1024 * 1024;
const KEY = {
  keyId: 'k',
  projectId: 'p',
  environmentId: 'fuzz-test',
  environment: 'development',
  kind: 'publishable',
} as const;

// Starts a gateway with a stub producer, because a broker client would make only valid batches more expensive.
export async function openCostGateway() {
  const metrics = createMetrics('gateway');
  const producer = {
    send: (_: readonly OutgoingRecord[], done: (fault: null) => void) => void setImmediate(done, null),
  };
  let charged = 0;
  const route = createMessagesRoute({
    authorise: () => KEY as never,
    limit: () => ({
      charge: (units: number) => {
        charged = units;
      },
    }),
    bytesInFlight: createBytesInFlight(BYTES_MAX),
    publish: createPublish({ producer, deadlineMs: 2_500 }),
    publishRejections: createPublishRejections({ producer, topic: 'rejections', schemaId: () => 3, metrics }),
    keyer: createIdentityKeyer(randomBytes(32)),
    schemaIds: () => ({ messages: 1, identityLinks: 2 }),
    topicPrefix: 'fuzz.',
    eventAgeMaxMs: EVENT_AGE_MAX_MS,
    eventAheadMaxMs: EVENT_AHEAD_MAX_MS,
    libraries: new Set(),
    metrics: createGatewayMetrics(metrics),
    usage: createUsageCounter(),
  });
  const app = createHttpApp({
    routes: [route],
    publishableKeyHeader: 'x-service-publishable-key',
    link: (code) => code,
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  return {
    port: server.port,
    /** Units charged for the last request. */
    get charged() {
      return charged;
    },
    close: () => server.close(),
  };
}
