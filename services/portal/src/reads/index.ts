import type { QueryOptions, QueryRows } from '@playline/stores';
import {
  type ActivityPage,
  type ActivitySearch,
  type ContractName,
  readTokens,
  searchActivities,
  type TokenLine,
} from './activities.ts';
import { type AuditLine, type AuditSearch, readAudit } from './audit.ts';
import { type ErasureLine, type OpenErasures, readErasures, readOpenErasures, readReceipt } from './erasures.ts';
import {
  type MessagePage,
  type MessageSearch,
  readMessage,
  type Span,
  searchMessages,
  type WholeMessage,
} from './messages.ts';
import { type MintLine, type MintSearch, type MintSigner, readMintSigners, readMints } from './mints.ts';
import {
  type ConsentChange,
  type IdentitySearch,
  type LinkDecision,
  readConsents,
  readIds,
  readLinks,
} from './people.ts';
import type { IdAccess } from './query-view.ts';
import {
  countRejections,
  type MinuteCount,
  type Rejection,
  type RejectionCount,
  type RejectionSearch,
  type RejectionStep,
  readMinuteCounts,
  readRejectionSteps,
  readRejectionsOfTrace,
} from './rejections.ts';

export type * from './activities.ts';
export { readManyActivities } from './activities.ts';
export type * from './audit.ts';
export { readAllAudit } from './audit.ts';
export type { ErasureLine, OpenErasures } from './erasures.ts';
export type * from './messages.ts';
export { readManyMessages } from './messages.ts';
export {
  MINTS_SHOWN_MAX,
  type MintLine,
  type MintPosition,
  type MintSearch,
  type MintSigner,
  readManyMints,
} from './mints.ts';
export type * from './people.ts';
export { type IdAccess, maskId } from './query-view.ts';
export type * from './rejections.ts';

/**
 * What pages read from ClickHouse. Each question names the environments, the project or the contracts that it is about,
 * whole; who may ask which is judged before it is asked. A question is given up after five seconds, and when its `signal` is aborted.
 * Each throws PublicError VALIDATION_ERROR when it is more than a page may read, else what the store throws.
 */
export interface PortalReads {
  /** Reads days of the environment (of the name, where one is given) from the newest on, until the page is full. */
  messages(search: MessageSearch, options?: QueryOptions): Promise<MessagePage>;
  /** Reads a few granules. */
  message(
    question: { readonly environmentId: string; readonly messageId: string; readonly sight: IdAccess },
    options?: QueryOptions,
  ): Promise<WholeMessage[]>;
  /** Reads the environment's rejections of the span's weeks. */
  rejections(question: RejectionSearch, options?: QueryOptions): Promise<RejectionCount[]>;
  /** Reads the environment's rejections of the span's weeks. */
  rejectionSteps(
    question: RejectionSearch & { readonly stepS: number },
    options?: QueryOptions,
  ): Promise<RejectionStep[]>;
  /** Reads a few granules. */
  rejectionsOfTrace(
    question: { readonly environmentId: string; readonly traceId: string },
    options?: QueryOptions,
  ): Promise<Rejection[]>;
  /** Reads the days of the span, and one on either side. */
  minuteCounts(
    question: Span & { readonly environmentIds: readonly string[] },
    options?: QueryOptions,
  ): Promise<MinuteCount[]>;
  /** Reads two granules an identity. */
  consents(question: IdentitySearch, options?: QueryOptions): Promise<ConsentChange[]>;
  /** Reads a few granules. */
  links(question: IdentitySearch, options?: QueryOptions): Promise<LinkDecision[]>;
  /** Reads the rows of the identities' events. */
  ids(
    question: IdentitySearch & { readonly sight: IdAccess },
    options?: QueryOptions,
  ): Promise<ReadonlyMap<string, string>>;
  /** Reads all requests. */
  erasures(environmentId: string, options?: QueryOptions): Promise<ErasureLine[]>;
  /** Reads all requests and receipts of the environments. */
  openErasures(environmentIds: readonly string[], options?: QueryOptions): Promise<OpenErasures[]>;
  /** Reads one receipt. */
  receipt(
    question: { readonly environmentId: string; readonly erasureId: string },
    options?: QueryOptions,
  ): Promise<Readonly<Record<string, unknown>> | null>;
  /** Reads the mint requests of the span. */
  mints(question: MintSearch, options?: QueryOptions): Promise<MintLine[]>;
  /** Reads the mint requests of the span. */
  mintSigners(question: Pick<MintSearch, 'environmentId' | 'sinceMs'>, options?: QueryOptions): Promise<MintSigner[]>;
  /** Reads the contracts' entries from the newest on, until the page is full. */
  activities(question: ActivitySearch, options?: QueryOptions): Promise<ActivityPage>;
  /** Reads a granule or two a contract. */
  tokens(contracts: readonly ContractName[], options?: QueryOptions): Promise<TokenLine[]>;
  /** Reads the project's entries of the span. */
  audit(question: AuditSearch, options?: QueryOptions): Promise<AuditLine[]>;
}

/** A little more than ClickHouse gives a question, so that its own words come first. */
export const READ_MAX_MS = 6_000;

/** @param query asks as the account `portal` */
export function createPortalReads(query: QueryRows): PortalReads {
  return {
    messages: (search, options) => searchMessages(query, search, options),
    message: (question, options) => readMessage(query, question, options),
    rejections: (question, options) => countRejections(query, question, options),
    rejectionSteps: (question, options) => readRejectionSteps(query, question, options),
    rejectionsOfTrace: (question, options) => readRejectionsOfTrace(query, question, options),
    minuteCounts: (question, options) => readMinuteCounts(query, question, options),
    consents: (question, options) => readConsents(query, question, options),
    links: (question, options) => readLinks(query, question, options),
    ids: (question, options) => readIds(query, question, options),
    erasures: (environmentId, options) => readErasures(query, environmentId, options),
    openErasures: (environmentIds, options) => readOpenErasures(query, environmentIds, options),
    receipt: (question, options) => readReceipt(query, question, options),
    mints: (question, options) => readMints(query, question, options),
    mintSigners: (question, options) => readMintSigners(query, question, options),
    activities: (question, options) => searchActivities(query, question, options),
    tokens: (contracts, options) => readTokens(query, contracts, options),
    audit: (question, options) => readAudit(query, question, options),
  };
}
