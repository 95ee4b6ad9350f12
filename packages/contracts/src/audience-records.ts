import type { IdentityKind } from './enumerations.ts';

/** Sixteen zero bytes: nobody. */
export const ZERO_KEY: Buffer = Buffer.alloc(16);

/** Value of `audience.messages.v1`. Keys and ids are 16 raw bytes; times are epoch milliseconds; absent strings are ''. */
export interface MessageRecord {
  environmentId: string;
  type: string;
  eventName: string;
  eventTime: number;
  receivedAt: number;
  messageId: Buffer;
  identityKey: Buffer;
  anonymousKey: Buffer;
  userKey: Buffer;
  fromKey: Buffer;
  toKey: Buffer;
  anonymousId: string;
  userId: string;
  identityType: string;
  fromId: string;
  fromType: string;
  toId: string;
  toType: string;
  deviceId: string;
  sessionId: string;
  surface: string;
  consentLevel: string;
  test: boolean;
  library: string;
  libraryVersion: string;
  userAgent: string;
  locale: string;
  timezone: string;
  screen: string;
  screenDensity: number | null;
  pageUrl: string;
  pagePath: string;
  pageReferrer: string;
  pageTitle: string;
  browserLanguage: string;
  /** The object's JSON text as it stood in the body, but for what the column store cannot read; '' when absent. */
  properties: string;
  /** The object's JSON text as it stood in the body, but for what the column store cannot read; '' when absent. */
  traits: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Value of `audience.identity-links.v1`: identify links its anonymous id (from) with its user id (to). */
export interface IdentityLinkRecord {
  environmentId: string;
  messageId: Buffer;
  link: 'identify' | 'alias';
  fromKind: IdentityKind;
  fromId: string;
  toKind: IdentityKind;
  toId: string;
  eventTime: number;
  receivedAt: number;
  traceId: string;
  /** Not empty: these are split off from the rest of their person, and both ids are one text that belongs to nobody. */
  unlink: { key: Buffer; kind: IdentityKind }[];
}

/** Value of `audience.identity-decisions.v1`: the outcome of one step of one link fact. */
export interface IdentityDecisionRecord {
  environmentId: string;
  generation: number;
  partition: number;
  offset: number;
  step: number;
  messageId: Buffer;
  link: 'identify' | 'alias' | 'same_id';
  aKey: Buffer;
  aKind: IdentityKind;
  bKey: Buffer;
  bKind: IdentityKind;
  outcome: 'linked' | 'unchanged' | 'refused' | 'ambiguous';
  reason: string;
  root: Buffer;
  moved: DecidedIdentity[];
  eventTime: number;
  receivedAt: number;
  traceId: string;
  /** Of an unlink alone: the identities that stay with the person, and its key. `moved` has those that were split off. Empty when nobody was. */
  unlink: { stayedRoot: Buffer; stayed: DecidedIdentity[] } | null;
}

/** An identity of a decision. `linkedAt`: epoch milliseconds of its first link; a later move keeps it. */
export interface DecidedIdentity {
  key: Buffer;
  kind: IdentityKind;
  linkedAt: number;
}

/**
 * What a decision is called outside of the log. Symbols of an enumeration never change (a release that does not know one
 * could not read the record), so an unlink is logged under the words of a link, with `unlink` beside them.
 */
export function decisionWords({ link, outcome, unlink }: Pick<IdentityDecisionRecord, 'link' | 'outcome' | 'unlink'>) {
  if (unlink === null) return { link, outcome };
  return { link: 'unlink', outcome: outcome === 'linked' ? 'unlinked' : outcome } as const;
}

/** Value of `audience.consents.v1`. */
export interface ConsentRecord {
  environmentId: string;
  identityKey: Buffer;
  status: 'none' | 'anonymous' | 'full';
  source: string;
  receivedAt: number;
  traceId: string;
}

/** Value of `audience.rejections.v1`: one error of one rejected message. */
export interface RejectionRecord {
  environmentId: string;
  code: string;
  field: string;
  surface: string;
  library: string;
  libraryVersion: string;
  receivedAt: number;
  traceId: string;
}

/** Value of `audience.erasures.v1`. */
export interface ErasureRequestRecord {
  erasureId: Buffer;
  environmentId: string;
  subjectKeys: Buffer[];
  memberKeys: Buffer[];
  cutoffAt: number;
  requestedAt: number;
  traceId: string;
}

/** Headers of a link fact that waits, or has waited, for an erasure; every copy of it has them. */
export const WAITING_HEADERS = {
  /** Its offset on the topic of links when it first waited, in decimal digits: facts of one person keep this order. */
  firstOffset: 'first-offset',
  /** Keys of all identities that it names, 16 bytes each: an eraser, which cannot compute them from the ids, sees whom it is about. */
  identityKeys: 'identity-keys',
  /**
   * Of a record on the topic of parked links that is no fact but a note: offsets, eight bytes each, of facts before it in
   * its partition that have gone back to the topic of links. A reader that starts again passes those over. It must start
   * again before them, since its commit cannot pass a fact that still waits.
   */
  left: 'left',
} as const;

/** An identity and when something happened to it and was received: what a fence of an erasure is asked about. */
export interface FenceQuestion {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}
