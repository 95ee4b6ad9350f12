import type { QueryOptions, QueryRows } from '@playline/stores';
import { readTokens, searchActivities } from './activities.ts';
import { readAlertCounts } from './alerts.ts';
import { readAudit } from './audit.ts';
import { readErasure, readErasures, readOpenErasures, readReceipt } from './erasures.ts';
import { countMessages, readMessage, searchMessages } from './messages.ts';
import { readMintSigners, readMints } from './mints.ts';
import { readOverview } from './overview.ts';
import { readIds, readProfile, readTimeline } from './people.ts';
import { createQueryView } from './query-view.ts';
import { readRejectionCauses, readRejectionsOfTrace } from './rejections.ts';

export type * from './activities.ts';
export { readManyActivities } from './activities.ts';
export { type AlertCounts, ENVIRONMENTS_MAX, NO_COUNTS } from './alerts.ts';
export type * from './audit.ts';
export { readAllAudit } from './audit.ts';
export type { ErasureLine, OpenErasures } from './erasures.ts';
export type * from './messages.ts';
export { MESSAGES_MAX } from './messages.ts';
export type * from './mints.ts';
export { readManyMints } from './mints.ts';
export type * from './overview.ts';
export type * from './people.ts';
export { exceedsReadLimits, type IdAccess, maskId, readPages } from './query-view.ts';
export type * from './rejections.ts';

const READS = {
  messages: searchMessages,
  message: readMessage,
  messageCounts: countMessages,
  overview: readOverview,
  rejections: readRejectionCauses,
  rejectionsOfTrace: readRejectionsOfTrace,
  timeline: readTimeline,
  profile: readProfile,
  ids: readIds,
  erasures: readErasures,
  erasure: readErasure,
  openErasures: readOpenErasures,
  receipt: readReceipt,
  mints: readMints,
  mintSigners: readMintSigners,
  activities: searchActivities,
  tokens: readTokens,
  audit: readAudit,
  alertCounts: readAlertCounts,
};

/**
 * ClickHouse queries for pages. Every query is restricted to environments, a project or contracts; the caller must
 * check access to them. Aborting `signal` cancels the query. A query that exceeds the read limits throws PublicError
 * VALIDATION_ERROR. All other store errors are rethrown.
 */
export type PortalReads = {
  [K in keyof Reads]: (search: Parameters<Reads[K]>[1], options?: QueryOptions) => ReturnType<Reads[K]>;
};
type Reads = typeof READS;

/** Slightly longer than the ClickHouse limit for the account, so that ClickHouse reports the timeout. */
export const READ_MAX_MS = 6_000;

/** @param query sends queries as the account `portal` */
export function createPortalReads(query: QueryRows): PortalReads {
  const bound = Object.entries(READS).map(([name, read]) => {
    return [name, (search: never, options?: QueryOptions) => read(createQueryView(query, options), search)];
  });
  return Object.fromEntries(bound) as PortalReads;
}
