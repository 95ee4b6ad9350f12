/** What pages read from ClickHouse. */
import type { QueryOptions, QueryRows } from '@playline/stores';
import { readTokens, searchActivities } from './activities.ts';
import { readAudit } from './audit.ts';
import { readErasures, readOpenErasures, readReceipt } from './erasures.ts';
import { readMessage, searchMessages } from './messages.ts';
import { readMintSigners, readMints } from './mints.ts';
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
export { MINTS_SHOWN_MAX, readManyMints } from './mints.ts';
export type * from './people.ts';
export { type IdAccess, maskId } from './query-view.ts';
export type * from './rejections.ts';

const READS = {
  messages: searchMessages,
  message: readMessage,
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
 * The reads of pages. Each search names its environments, project or contracts; callers check access before.
 * A read ends when its `signal` is aborted. Each throws PublicError VALIDATION_ERROR beyond the limits of a page, else
 * what the store throws.
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

/** A little more than ClickHouse's own limit for the account, so that its error is the one reported. */
export const READ_MAX_MS = 6_000;

/** @param query sends queries as the account `portal` */
export function createPortalReads(query: QueryRows): PortalReads {
  const bound = Object.entries(READS as unknown as Record<string, (...args: unknown[]) => unknown>).map(
    ([name, read]) => [name, (search: unknown, options?: QueryOptions) => read(query, search, options)],
  );
  return Object.fromEntries(bound) as PortalReads;
}
