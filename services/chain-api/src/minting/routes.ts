import type { Route } from '@playline/http';
import {
  createAcceptMints,
  type MintClaims,
  type MintCursors,
  type MintReader,
  type QuotaPolicy,
  type Quotas,
} from '@playline/mints';
import type { Config } from '../config.ts';
import { type CollectionRouteParts, createCollectionRoute } from '../routes/collection-route.ts';
import { createGetMintRequest, createListMintRequests, createMint } from '../routes/mint-requests/handler.ts';
import { createRefreshes } from '../routes/refresh-metadata/handler.ts';
import type { Collections } from './collections.ts';
import type { createIsLogKnown, MintTopics } from './publish.ts';
import { createWithBody } from './read-request-body.ts';

/** Ports of the operations on collections. */
export interface MintingParts {
  readonly collections: Collections;
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly reader: Pick<MintReader, 'readPage' | 'readOne'>;
  readonly cursors: MintCursors;
  readonly topics: MintTopics;
  readonly isLogKnown: ReturnType<typeof createIsLogKnown>;
}

export type MintingSettings = Pick<
  Config,
  | 'MINTS_PER_MINUTE'
  | 'MINTS_BURST'
  | 'REFRESHES_PER_HOUR'
  | 'PUBLISH_DEADLINE_MS'
  | 'READ_DEADLINE_MS'
  | 'MINTS_LISTED_AFTER_MS'
>;

const MINUTE_S = 60;
const HOUR_S = 3600;

/** The six operations that take a secret key: contract, "Mints and metadata". */
export function createMintingRoutes(
  settings: MintingSettings,
  parts: MintingParts,
  before: Omit<CollectionRouteParts, 'collections'>,
): readonly Route[] {
  const { claims, quotas, reader, cursors, topics, collections, isLogKnown } = parts;
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
  const acceptMints = createAcceptMints({
    claims,
    quotas,
    policy: mintPolicy,
    publish: topics.publishRequests,
    isLogKnown,
  });
  const deadlineMs = settings.READ_DEADLINE_MS;
  const operations = [
    ...createRefreshes({ policy: refreshPolicy, publish: topics.publishMetadata, ...publishing }),
    createMint({ collections, acceptMints, policy: mintPolicy, ...publishing }),
    createListMintRequests({ reader, cursors, deadlineMs, settleMs: settings.MINTS_LISTED_AFTER_MS }),
    createGetMintRequest({ claims, reader, cursors, deadlineMs }),
  ];
  return operations.map((operation) => createCollectionRoute({ ...before, collections }, operation));
}
