import { randomBytes } from 'node:crypto';
import { createUsageCounter } from '@playline/access-keys';
import { createDocsRoutes } from '@playline/api-docs';
import { type ActivityRow, type ChainStore, createCursors, type TokenRow, type Watermarks } from '@playline/chain';
import { createMemoryChain, openMemoryWatermarks, putActivities } from '@playline/chain/memory';
import { type HttpApp, openHttpServer } from '@playline/http';
import { createLogger, createMetrics } from '@playline/runtime';
import { expect, onTestFinished } from 'vitest';
import type { RateLimitKeys } from '../admit-call.ts';
import { type ChainApiSettings, createChainApiApp } from '../app.ts';
import { toChains } from '../chains.ts';
import { createChainDocs } from '../docs/source.ts';
import { createHorizons } from '../horizons.ts';
import { createChainApiMetrics, showHorizons } from '../metrics.ts';
import type { TokenLookupParts } from '../token-lookup.ts';
import { createMintingWorld, type MintingWorld, SECRET_KEY_HEADER } from './minting-world.ts';

export const CHAIN = { name: 'demo-chain', id: 'eip155:31337' };
export const OTHER_CHAIN = { name: 'other-chain', id: 'eip155:1' };
const PARTITIONS = 6;
/** Partitions of the two chains in the log. */
export const [PARTITION, OTHER_PARTITION] = toChains([CHAIN, OTHER_CHAIN], PARTITIONS).map(
  ({ partition }) => partition,
) as [number, number];

/** A page of the history. */
export interface HistoryPage {
  readonly result: readonly Readonly<Record<string, unknown> & { id: string }>[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

export interface TestChainApi {
  readonly url: string;
  readonly port: number;
  readonly routes: HttpApp['routes'];
  readonly watermarks: Watermarks;
  readonly logLines: string[];
  /** Ports of the operations on collections. */
  readonly minting: MintingWorld;
  /** Calls an operation on a collection with the secret key; `path` below `/v1/chains/demo-chain/collections`. */
  call(path: string, request?: CollectionRequest): Promise<Response>;
  /** Stores rows, and publishes the watermark of the last of them. */
  put(...rows: readonly ActivityRow[]): Promise<void>;
  putTokens(...rows: readonly TokenRow[]): Promise<void>;
  /** Of a path below `/v1/chains`. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** A page of the history of the demo chain. @throws Error when it is not answered with 200 */
  history(query?: Readonly<Record<string, string>>): Promise<HistoryPage>;
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Called after each test. */
  close(): Promise<void>;
}

/** A call of an operation with a secret key. */
export interface CollectionRequest {
  /** JSON; a body that is sent as it is when it is a text. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestChainApiOptions extends Partial<ChainApiSettings> {
  rateLimitKeys?: RateLimitKeys;
  /** Calls that replace those of the store in memory. */
  store?: Partial<ChainStore>;
  watermarks?: Partial<Watermarks>;
  createNode?: TokenLookupParts['createNode'];
  /** Epoch milliseconds. */
  wallClockMs?: () => number;
  /** Of the signature of cursors. */
  cursorSecret?: Buffer;
}

const NO_RATE_LIMIT_KEYS: RateLimitKeys = { find: async () => null };

const noNode: TokenLookupParts['createNode'] = () => {
  throw new Error('the test names no node');
};

const settings: ChainApiSettings = {
  READ_DEADLINE_MS: 5000,
  RATE_LIMIT_CALLS: 1500,
  RATE_LIMIT_WINDOW_S: 300,
  TRUSTED_PROXIES: 0,
  HTTP_HEADER_PREFIX: 'x-service',
  MINTS_PER_MINUTE: 200,
  MINTS_BURST: 2000,
  REFRESHES_PER_HOUR: 10_000,
  PUBLISH_DEADLINE_MS: 2500,
  MINTS_LISTED_AFTER_MS: 0,
  CHAIN_NODES: [],
  PUBLIC_URL: 'https://docs.test',
};

/** Of every API: making them takes longer than most tests. */
const docs = createDocsRoutes(() =>
  createChainDocs({
    publicUrl: settings.PUBLIC_URL,
    headerPrefix: settings.HTTP_HEADER_PREFIX,
    chains: [CHAIN, OTHER_CHAIN],
  }),
);

/** Opens the whole chain API on a free port, with a store in memory. It is closed after the test. */
export async function openChainApi(options: TestChainApiOptions = {}): Promise<TestChainApi> {
  const { rateLimitKeys = NO_RATE_LIMIT_KEYS, cursorSecret = randomBytes(32) } = options;
  const memory = createMemoryChain();
  const watermarks = { ...openMemoryWatermarks(), ...options.watermarks };
  // A writer lives, and has written nothing yet.
  for (const partition of [PARTITION, OTHER_PARTITION]) await watermarks.publish(partition, 0);
  const registry = createMetrics('chain-api');
  const metrics = createChainApiMetrics(registry);
  const horizons = createHorizons({ watermarks, onFault: metrics.onOldHorizon });
  const chains = toChains([CHAIN, OTHER_CHAIN], PARTITIONS);
  showHorizons(registry, chains, horizons.last);
  const logLines: string[] = [];
  const minting = await createMintingWorld();
  const app = createChainApiApp({
    config: { ...settings, ...options },
    store: { ...memory.reader, ...options.store },
    createNode: options.createNode ?? noNode,
    ...(options.wallClockMs && { wallClockMs: options.wallClockMs }),
    cursors: createCursors({ keys: [{ id: 1, secret: cursorSecret }] }),
    horizonOf: horizons.of,
    logger: createLogger({ service: 'chain-api', level: 'info' }, { write: (line: string) => logLines.push(line) }),
    chains,
    docs,
    rateLimitKeys,
    metrics,
    usage: createUsageCounter(),
    verifySecret: minting.verifySecret,
    minting: minting.parts,
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  onTestFinished(server.close);
  const url = `http://127.0.0.1:${server.port}`;
  const get: TestChainApi['get'] = (path, headers = {}) => fetch(`${url}/v1/chains${path}`, { headers });
  const { put, putTokens } = createPut(memory, watermarks);
  return {
    url,
    port: server.port,
    routes: app.routes,
    watermarks,
    logLines,
    put,
    putTokens,
    get,
    minting,
    call: createCall(url, minting),
    history: async (query = {}) => {
      const answer = await get(`/${CHAIN.name}/activity-history?${new URLSearchParams(query)}`);
      expect(answer.status).toBe(200);
      return (await answer.json()) as HistoryPage;
    },
    metrics: registry.text,
    close: server.close,
  };
}

function createCall(url: string, { secretKey }: MintingWorld): TestChainApi['call'] {
  return (path, { body, headers = {} } = {}) => {
    const sent =
      body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) };
    return fetch(`${url}/v1/chains/${CHAIN.name}/collections${path}`, {
      ...sent,
      headers: { [SECRET_KEY_HEADER]: secretKey, 'content-type': 'application/json', ...headers },
    });
  };
}

function createPut(
  { activities }: ReturnType<typeof createMemoryChain>,
  watermarks: Pick<Watermarks, 'publish'>,
): Pick<TestChainApi, 'put' | 'putTokens'> {
  let block = 0;
  const under = () => ({ token: `block ${block++}`, signal: AbortSignal.timeout(10_000) });
  return {
    put: async (...rows) => {
      await putActivities(activities, rows);
      for (const { partition, updatedAt } of rows) await watermarks.publish(partition, updatedAt);
    },
    putTokens: (...rows) => activities.insert({ table: 'tokens', rows, ...under() }),
  };
}

/** Expects the envelope of a code with these details. */
export async function expectEnvelope(answer: Response, code: string, details: unknown = null): Promise<void> {
  expect(await answer.json()).toEqual({
    message: expect.any(String),
    link: `https://docs.test/docs/errors/${code}`,
    trace_id: answer.headers.get('x-trace-id'),
    code,
    details,
  });
}
