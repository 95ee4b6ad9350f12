import type { ContextString, IdentityKind } from './limits.ts';

/** 128 bits. */
export const IDENTITY_KEY_BYTES = 16;

/** The key of no identity. */
export const ZERO_KEY: Buffer = Buffer.alloc(IDENTITY_KEY_BYTES);

/** Value of `audience.messages.v1`. Keys and ids are 16 raw bytes; times are epoch milliseconds; absent strings are ''. */
export interface MessageRecord extends Texts, IdentityKeys {
  eventTime: number;
  receivedAt: number;
  messageId: Buffer;
  test: boolean;
  screenDensity: number | null;
  /** JSON text as sent, except for what ClickHouse cannot read; '' when absent. */
  properties: string;
  traits: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

type IdentityKeys = Record<'identityKey' | 'anonymousKey' | 'userKey' | 'fromKey' | 'toKey', Buffer>;
type Ids = 'anonymousId' | 'userId' | 'fromId' | 'toId' | 'deviceId' | 'sessionId';
type Enumerations = 'type' | 'identityType' | 'fromType' | 'toType' | 'surface' | 'consentLevel';
type Texts = Record<'environmentId' | 'eventName' | Ids | Enumerations | ContextString, string>;

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
  /** Not empty for an unlink, which splits these identities off; both ids are then a text that is no id. */
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
   * Of an unlink: the person's key and the identities that stay; `moved` has those split off. Both are empty when none
   * was.
   */
  unlink: { stayedRoot: Buffer; stayed: DecidedIdentity[] } | null;
}

/** `linkedAt`: epoch milliseconds of its first link; a later move keeps it. */
export interface DecidedIdentity {
  key: Buffer;
  kind: IdentityKind;
  linkedAt: number;
}

/**
 * Link and outcome as names. Symbols of an Avro enumeration never change, so an unlink is logged with the symbols of a
 * link and marked by its field `unlink`.
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
  /** Decimal offset of the fact when it was first parked. Facts of one person keep this order. */
  firstOffset: 'first-offset',
  /** Keys of the identities of the fact, 16 bytes each, for the eraser. */
  identityKeys: 'identity-keys',
  /**
   * Marks a note instead of a fact: offsets (eight big-endian bytes each) of earlier facts that went back to the topic
   * of links. A reader that restarts reads them again and must skip them.
   */
  left: 'left',
} as const;

export const WAITING_OFFSET_BYTES = 8;

/** An identity, and when its event happened and was received. */
export interface FenceQuery {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}
