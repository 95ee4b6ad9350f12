import { randomBytes } from 'node:crypto';
import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  createKey,
  createKeyVerifier,
  createUsageCounter,
  openKeys,
  type RecordStore,
  type RecordView,
  type UsageCounter,
} from '@playline/access-keys';
import { createMemoryStore } from '@playline/access-keys/test';
import { buildSdk } from '@playline/audience-client/sdk';
import { FRAME_BYTES, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import { type HttpApp, type HttpServer, openHttpServer, type Route } from '@playline/http';
import { createIdentityKeyer, type Utf8IdentityKeyer } from '@playline/people';
import { openSharedLimiter } from '@playline/rate-limit';
import { createMemoryBalances } from '@playline/rate-limit/memory';
import { createLogger, createMetrics, parseConfig, type Tracing } from '@playline/runtime';
import type { OutgoingRecord, RecordMetadata, SendForOffsetOptions } from '@playline/stream';
import { smallMessage } from '@playline/testkit';
import { expect, onTestFinished } from 'vitest';
import { z } from 'zod';
import { createDocsRoutes, createGatewayApp, type GatewaySettings } from '../app.ts';
import type { AudiencePorts } from '../audience-routes.ts';
import { type ClockWatch, createClockWatch } from '../clock-watch.ts';
import type { EnvironmentRates } from '../environment-rates.ts';
import { rateLimitSettings } from '../rate-limits/settings.ts';
import { createPublishRejections } from '../rejections.ts';
import type { SchemaIds } from '../schema-ids.ts';
import { type AudienceStores, openAudienceStores, toPorts } from './audience-stores.ts';

export const KEY_HEADER = 'x-service-publishable-key';
export const MESSAGES = '/v1/audience/messages';
const PREFIX = 'svcapik';

/** A producer whose acknowledgements the test controls. */
export interface TestProducer {
  readonly sent: { records: readonly OutgoingRecord[]; done: (fault: Error | null) => void }[];
  /** Outcome of the next sends: acknowledged, failed, or held until the test settles them. */
  mode: 'acknowledge' | 'fail' | 'hold';
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /** There is one partition, and offsets start at 0. */
  sendForOffset(record: OutgoingRecord, options?: SendForOffsetOptions): Promise<RecordMetadata>;
  /** The options of each `sendForOffset`. */
  readonly deliveries: SendForOffsetOptions[];
}

export interface TestGateway {
  readonly url: string;
  readonly port: number;
  readonly key: string;
  readonly secretKey: string;
  readonly store: RecordStore<AccessKeyRecord>;
  readonly producer: TestProducer;
  readonly audience: AudienceStores;
  readonly keyer: Utf8IdentityKeyer;
  /** Receives the rejections. */
  readonly rejectionProducer: TestProducer;
  readonly server: HttpServer;
  /** Method and path of every route. */
  readonly routes: HttpApp['routes'];
  readonly logLines: string[];
  /** Counts key usage. Only the test reads the counts. */
  readonly usage: UsageCounter;
  /** Returns the metrics in the Prometheus text format. */
  metrics(): Promise<string>;
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Called automatically after each test. */
  close(): Promise<void>;
}

export interface TestGatewayOptions extends Partial<GatewaySettings> {
  schemaIds?: () => SchemaIds | null;
  /** Replaces the function that reads the keys. */
  readSince?: RecordView<AccessKeyRecord>['readSince'];
  ratesOf?: EnvironmentRates;
  clock?: ClockWatch;
  tracing?: Tracing;
  /** Environment of both keys. */
  environmentId?: string;
  /** Ports that replace the in-memory ports. */
  audience?: Partial<AudiencePorts>;
}

/** Opens a complete gateway on a free port, with keys and log in memory. The gateway is closed after the test. */
export async function openGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { view, store } = createMemoryStore(ACCESS_KEYS);
  const { environmentId = 'demo-test' } = options;
  const owner = { projectId: 'p', environmentId, environment: 'production' } as const;
  const { key } = await createKey({ store, prefix: PREFIX }, { ...owner, kind: 'publishable' });
  const { key: secretKey } = await createKey({ store, prefix: PREFIX }, { ...owner, kind: 'secret' });
  const [producer, rejectionProducer] = [createTestProducer(), createTestProducer()];
  const logLines: string[] = [];
  const metrics = createMetrics('gateway');
  const keys = openKeys({ view: { ...view, readSince: options.readSince ?? view.readSince }, readEveryMs: 0 });
  const audience = await openAudienceStores();
  const [keyer, usage] = [createIdentityKeyer(randomBytes(32)), createUsageCounter()];
  const config = { ...settings, ...options };
  const app = createGatewayApp({
    config,
    docs: getDocs(config),
    producer,
    publishRejections: createPublishRejections({
      producer: rejectionProducer,
      topic: REJECTIONS,
      schemaId: () => 3,
      metrics,
    }),
    verifyPublishable: createKeyVerifier({ keys, prefix: PREFIX, kind: 'publishable' }),
    findEnded: keys.findEnded,
    limiter: openSharedLimiter({ balances: createMemoryBalances() }),
    ratesOf: options.ratesOf ?? ((_, setting) => setting),
    clock: options.clock ?? createClockWatch(),
    keyer,
    audience: toPorts(audience, { keys, prefix: PREFIX }, options.audience),
    schemaIds: options.schemaIds ?? (() => ({ messages: 1, identityLinks: 2 })),
    metrics,
    tracing: options.tracing ?? null,
    usage,
    logger: createLogger({ service: 'gateway', level: 'info' }, { write: (line: string) => logLines.push(line) }),
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  onTestFinished(server.close);
  const url = `http://127.0.0.1:${server.port}`;
  const post: TestGateway['post'] = (body, headers = {}) =>
    fetch(url + MESSAGES, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [KEY_HEADER]: key, ...headers },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
  return {
    url,
    port: server.port,
    key,
    secretKey,
    store,
    producer,
    rejectionProducer,
    audience,
    keyer,
    server,
    routes: app.routes,
    logLines,
    usage,
    metrics: metrics.text,
    post,
    close: server.close,
  };
}

const SDK = buildSdk();
const docs = new Map<string, Route[]>();

/** Caches the documentation, because creating it takes longer than most tests. */
function getDocs({ PUBLIC_URL: publicUrl, HTTP_HEADER_PREFIX: headerPrefix }: GatewaySettings): Route[] {
  const routes = docs.get(publicUrl + headerPrefix) ?? createDocsRoutes({ publicUrl, headerPrefix, downloads: SDK });
  docs.set(publicUrl + headerPrefix, routes);
  return routes;
}

const REJECTIONS = 'test.audience.rejections.v1';
const settings: GatewaySettings = {
  HTTP_HEADER_PREFIX: 'x-service',
  TOPIC_PREFIX: 'test.',
  BYTES_IN_FLIGHT_MAX: 16 * 1024 * 1024,
  PUBLISH_DEADLINE_MS: 2500,
  EVENT_AGE_MAX_MS: 30 * 24 * 60 * 60 * 1000,
  EVENT_AHEAD_MAX_MS: 24 * 60 * 60 * 1000,
  ERASURE_CLOCK_SKEW_MS: 2000,
  CLIENT_LIBRARIES: ['playline-unity'],
  PUBLIC_URL: 'https://docs.test',
  ...parseConfig(z.object(rateLimitSettings), {}),
};

export function createTestProducer(): TestProducer {
  let sentCount = 0;
  const producer: TestProducer = {
    sent: [],
    deliveries: [],
    sendForOffset: (record, options = {}) => {
      producer.deliveries.push(options);
      const position = { partition: 0, offset: sentCount++, loggedAtMs: Date.now() };
      return new Promise((resolve, reject) => {
        producer.send([record], (fault) => (fault === null ? resolve(position) : reject(fault)));
      });
    },
    mode: 'acknowledge',
    send: (records, done) => {
      producer.sent.push({ records, done });
      if (producer.mode === 'acknowledge') setImmediate(done, null);
      if (producer.mode === 'fail') setImmediate(done, new Error('NOT_ENOUGH_REPLICAS broker-7.internal'));
    },
  };
  return producer;
}

/** Creates a valid track message. `fields` override the defaults. */
export const message = (fields: Record<string, unknown> = {}): Record<string, unknown> =>
  smallMessage('track', { anonymousId: 'visitor-1', eventName: 'level_complete', ...fields });

/** Decodes the message records that were sent. */
export function sentMessages({ sent }: TestProducer): MessageRecord[] {
  return sent
    .flatMap(({ records }) => records)
    .filter(({ topic }) => topic === 'test.audience.messages.v1')
    .map(({ value }) => messageRecordCodec.decode(value.subarray(FRAME_BYTES)));
}

/** Expects an error envelope with the given code and details. */
export async function expectEnvelope(response: Response, code: string, details: unknown = null): Promise<void> {
  expect(await response.json()).toEqual({
    message: expect.any(String),
    link: `https://docs.test/docs/errors/${code}`,
    trace_id: response.headers.get('x-trace-id'),
    code,
    details,
  });
}
