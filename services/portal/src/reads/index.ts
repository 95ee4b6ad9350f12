import type { QueryOptions, QueryRows } from '@playline/stores';
import { readTokens, searchActivities } from './activities.ts';
import { readAudit } from './audit.ts';
import { readErasures, readOpenErasures, readReceipt } from './erasures.ts';
import { readMessage, searchMessages } from './messages.ts';
import { readMintSigners, readMints } from './mints.ts';
import { readOverview } from './overview.ts';
import { readConsents, readIds, readLinks } from './people.ts';
import { countRejections, readRejectionSteps, readRejectionsOfTrace } from './rejections.ts';

export type * from './activities.ts';
export { readManyActivities } from './activities.ts';
export type * from './audit.ts';
export { readAllAudit } from './audit.ts';
export type { ErasureLine, OpenErasures } from './erasures.ts';
export type * from './messages.ts';
export { readManyMessages } from './messages.ts';
export type * from './mints.ts';
export { readManyMints } from './mints.ts';
export type * from './overview.ts';
export type * from './people.ts';
export { type IdAccess, maskId } from './query-view.ts';
export type * from './rejections.ts';

const READS = {
  messages: searchMessages,
  message: readMessage,
  overview: readOverview,
  rejections: countRejections,
  rejectionSteps: readRejectionSteps,
  rejectionsOfTrace: readRejectionsOfTrace,
  consents: readConsents,
  links: readLinks,
  ids: readIds,
  erasures: readErasures,
  openErasures: readOpenErasures,
  receipt: readReceipt,
  mints: readMints,
  mintSigners: readMintSigners,
  activities: searchActivities,
  tokens: readTokens,
  audit: readAudit,
};

type Read<S, R> = (search: S, options?: QueryOptions) => Promise<R>;

/**
 * ClickHouse queries for pages. Every query is restricted to environments, a project or contracts; the caller must
 * check access to them. Aborting `signal` cancels the query. A query that exceeds the read limits throws PublicError
 * VALIDATION_ERROR. All other store errors are rethrown.
 */
export type PortalReads = {
  [K in keyof typeof READS]: (typeof READS)[K] extends (
    query: QueryRows,
    search: infer S,
    options?: QueryOptions,
  ) => Promise<infer R>
    ? Read<S, R>
    : never;
};

/** Slightly longer than the ClickHouse limit for the account, so that ClickHouse reports the timeout. */
export const READ_MAX_MS = 6_000;

/** @param query sends queries as the account `portal` */
export function createPortalReads(query: QueryRows): PortalReads {
  const bound = Object.entries(READS as unknown as Record<string, (...args: unknown[]) => unknown>).map(
    ([name, read]) => [name, (search: unknown, options?: QueryOptions) => read(query, search, options)],
  );
  return Object.fromEntries(bound) as PortalReads;
}
