import type { IdentityKind } from './limits.ts';

/** Bytes of an identity key: 128 bits, so that two identities never meet by chance. */
export const IDENTITY_KEY_BYTES = 16;

/** The key of no identity: zero bytes. */
export const ZERO_KEY: Buffer = Buffer.alloc(IDENTITY_KEY_BYTES);

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

/** Value of `audience.identity-links.v1`. An identify links its anonymous id (from) with its user id (to). */
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
  /**
   * When not empty, this is an unlink: it splits these identities off from their person. Both ids are then the same
   * text, which is no id of anybody.
   */
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
  /**
   * For an unlink only: the identities that stay with the person, and the person's key. `moved` has those split off.
   * Both are empty when nobody was.
   */
  unlink: { stayedRoot: Buffer; stayed: DecidedIdentity[] } | null;
}

/** An identity of a decision. `linkedAt`: epoch milliseconds of its first link; a later move keeps it. */
export interface DecidedIdentity {
  key: Buffer;
  kind: IdentityKind;
  linkedAt: number;
}

/**
 * Names a decision outside of the log. Symbols of an Avro enumeration never change, because a release that does not know
 * a new one could not read it. So an unlink is logged with the symbols of a link and marked by its field `unlink`.
 */
export function decisionTextOf({ link, outcome, unlink }: Pick<IdentityDecisionRecord, 'link' | 'outcome' | 'unlink'>) {
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

/** Headers of a parked link fact and of all its copies. */
export const WAITING_HEADERS = {
  /** Decimal offset of the fact on the topic of links when it was first parked. Facts of one person keep this order. */
  firstOffset: 'first-offset',
  /**
   * Keys of all identities that the fact names, 16 bytes each. An eraser needs them: it cannot compute them from the
   * ids.
   */
  identityKeys: 'identity-keys',
  /**
   * Marks a note instead of a fact. It lists offsets, eight big-endian bytes each, of earlier facts in its partition that went
   * back to the topic of links. A reader cannot commit past a fact that still waits, so after a restart it reads these
   * facts again and must skip them.
   */
  left: 'left',
} as const;

/** Bytes of an offset in the header `left`. */
export const WAITING_OFFSET_BYTES = 8;

/** Question to a fence: an identity, and when its event happened and was received. */
export interface FenceQuery {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}
