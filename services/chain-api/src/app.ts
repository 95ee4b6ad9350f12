import type { KeyVerifier } from '@playline/access-keys';
import { errorPath } from '@playline/api-docs';
import type { ChainStore, Cursors } from '@playline/chain';
import { createClientAddress, createFailureLog, createHttpApp, type HttpApp, type Route } from '@playline/http';
import {
  createAcceptMints,
  type MintClaims,
  type MintCursors,
  type MintReader,
  type QuotaPolicy,
  type Quotas,
} from '@playline/mints';
import { createWindowLimiter } from '@playline/rate-limit';
import type { Logger, Tracing } from '@playline/runtime';
import { type AdmitCallParts, createAdmitCall } from './admit-call.ts';
import { type Chain, createRequireChain } from './chains.ts';
import type { Config } from './config.ts';
import type { ReadHorizon } from './horizons.ts';
import { type ChainApiMetrics, timeReads } from './metrics.ts';
import type { Collections } from './minting/collections.ts';
import type { createIsLogApplied, MintTopics } from './minting/publish.ts';
import { createWithBody } from './minting/read-request-body.ts';
import { createHistoryRead } from './routes/activity-history/handler.ts';
import { createChainRoute } from './routes/chain-route.ts';
import { type CollectionRouteParts, createAuthorise, createCollectionRoute } from './routes/collection-route.ts';
import { createGetMintRequest, createListMintRequests, createMint } from './routes/mint-requests/handler.ts';
import { createRefreshes } from './routes/refresh-metadata/handler.ts';
import { createTokenRead } from './routes/token/handler.ts';
import { createTokenLookup, type TokenLookupParts } from './token-lookup.ts';

export interface ChainApiParts {
  config: ChainApiSettings;
  chains: readonly Chain[];
  docs: readonly Route[];
  store: Pick<ChainStore, 'readPage' | 'readToken'>;
  createNode: TokenLookupParts['createNode'];
  cursors: Cursors;
  readHorizon: ReadHorizon;
  rateLimitKeys: AdmitCallParts['keys'];
  usage: AdmitCallParts['usage'];
  verifySecret: KeyVerifier;
  minting: MintingParts;
  metrics: ChainApiMetrics;
  tracing: Tracing | null;
  wallClockMs?: () => number;
  logger: Logger;
}

export type ChainApiSettings = Pick<
  Config,
  | 'READ_DEADLINE_MS'
  | 'RATE_LIMIT_CALLS'
  | 'RATE_LIMIT_WINDOW_S'
  | 'TRUSTED_PROXIES'
  | 'HTTP_HEADER_PREFIX'
  | 'MINTS_PER_MINUTE'
  | 'MINTS_BURST'
  | 'REFRESHES_PER_HOUR'
  | 'PUBLISH_DEADLINE_MS'
  | 'MINTS_LISTED_AFTER_MS'
  | 'CHAIN_NODES'
> & { PUBLIC_URL: string };

export function createChainApiApp({ config, metrics, logger, ...parts }: ChainApiParts): HttpApp {
  const store = timeReads(parts.store, metrics);
  const admit = createAdmitCall({
    keys: parts.rateLimitKeys,
    limiter: createWindowLimiter(),
    policy: { name: 'calls', calls: config.RATE_LIMIT_CALLS, windowS: config.RATE_LIMIT_WINDOW_S },
    addressOf: createClientAddress(config.TRUSTED_PROXIES),
    onRefused: metrics.onRefused,
    usage: parts.usage,
  });
  const checks = { admit, requireChain: createRequireChain(parts.chains) };
  const deadlineMs = config.READ_DEADLINE_MS;
  const { cursors, readHorizon } = parts;
  const tokenLookup = createTokenLookup({
    chains: config.CHAIN_NODES,
    createNode: parts.createNode,
    isLinked: parts.minting.collections.isLinked,
    onLookup: metrics.onLookup,
    wallClockMs: parts.wallClockMs ?? Date.now,
  });
  const secretKeyHeader = `${config.HTTP_HEADER_PREFIX}-api-key`;
  const authorise = createAuthorise(secretKeyHeader, parts.verifySecret);
  return createHttpApp({
    routes: [
      createChainRoute(checks, createTokenRead({ store, tokenLookup, deadlineMs })),
      createChainRoute(checks, createHistoryRead({ store, cursors, readHorizon, deadlineMs })),
      ...createMintingRoutes(config, parts.minting, { ...checks, authorise, usage: parts.usage }),
      ...parts.docs,
    ],
    link: (code) => config.PUBLIC_URL + errorPath(code),
    tracing: parts.tracing,
    onAnswer: metrics.onAnswer,
    onFailure: createFailureLog({ logger }),
  });
}

export interface MintingParts {
  readonly collections: Collections;
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly reader: Pick<MintReader, 'readPage' | 'readOne'>;
  readonly cursors: MintCursors;
  readonly topics: MintTopics;
  readonly isLogApplied: ReturnType<typeof createIsLogApplied>;
}

const MINUTE_S = 60;
const HOUR_S = 3600;

/** Operations that require a secret key: see "Mints and metadata" in the contract. */
function createMintingRoutes(
  settings: ChainApiSettings,
  parts: MintingParts,
  routeParts: Omit<CollectionRouteParts, 'collections'>,
): readonly Route[] {
  const { claims, quotas, reader, cursors, topics, collections, isLogApplied } = parts;
  const mintPolicy: QuotaPolicy = {
    kind: 'mint',
    perSecond: settings.MINTS_PER_MINUTE / MINUTE_S,
    burst: settings.MINTS_BURST,
  };
  const refreshPolicy: QuotaPolicy = {
    kind: 'refresh',
    perSecond: settings.REFRESHES_PER_HOUR / HOUR_S,
    burst: settings.REFRESHES_PER_HOUR,
  };
  const withBody = createWithBody();
  const publishing = { withBody, quotas, deadlineMs: settings.PUBLISH_DEADLINE_MS };
  const publish = topics.publishRequests;
  const acceptMints = createAcceptMints({ claims, quotas, policy: mintPolicy, publish, isLogApplied });
  const deadlineMs = settings.READ_DEADLINE_MS;
  const operations = [
    ...createRefreshes({ policy: refreshPolicy, publish: topics.publishMetadata, ...publishing }),
    createMint({ collections, acceptMints, policy: mintPolicy, ...publishing }),
    createListMintRequests({ reader, cursors, deadlineMs, settleMs: settings.MINTS_LISTED_AFTER_MS }),
    createGetMintRequest({ claims, reader, cursors, deadlineMs }),
  ];
  return operations.map((operation) => createCollectionRoute({ ...routeParts, collections }, operation));
}
