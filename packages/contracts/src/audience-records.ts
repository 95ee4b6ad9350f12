import type { ContextString, IdentityKind } from './limits.ts';

export const IDENTITY_KEY_BYTES = 16;

/** The value of an identity key field if there is no identity. */
export const ZERO_KEY: Buffer = Buffer.alloc(IDENTITY_KEY_BYTES);

/** Value of `audience.messages.v1`. Keys and UUIDs are 16 bytes, times epoch milliseconds; absent strings are ''. */
export interface MessageRecord extends StringFields, IdentityKeys {
  eventTime: number;
  receivedAt: number;
  messageId: Buffer;
  test: boolean;
  screenDensity: number | null;
  /** JSON as sent, except for values that ClickHouse cannot read; '' if absent. */
  properties: string;
  traits: string;
  /** 32 lower-case hexadecimal digits. */
  traceId: string;
}

type IdentityKeys = Record<'identityKey' | 'anonymousKey' | 'userKey' | 'fromKey' | 'toKey', Buffer>;
type Ids = 'anonymousId' | 'userId' | 'fromId' | 'toId' | 'deviceId' | 'sessionId';
type Enumerations = 'type' | 'identityType' | 'fromType' | 'toType' | 'surface' | 'consentLevel';
type StringFields = Record<'environmentId' | 'eventName' | Ids | Enumerations | ContextString, string>;

/** Value of `audience.identity-links.v1`. An identify message links its anonymous id (from) to its user id (to). */
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
  /** Only for an unlink: the identities to split from their person. Both ids are then the same placeholder. */
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
   * Only for an unlink: the person key and the remaining identities. `moved` lists the identities that were split off.
   * Both lists are empty if nothing was split off.
   */
  unlink: { stayedRoot: Buffer; stayed: DecidedIdentity[] } | null;
}

/** `linkedAt` is the time of the first link in epoch milliseconds. It does not change when the identity moves. */
export interface DecidedIdentity {
  key: Buffer;
  kind: IdentityKind;
  linkedAt: number;
}

/**
 * The link type and outcome of a decision. Symbols of an Avro enumeration can never change, so an unlink is logged with
 * the symbols of a link, and only its `unlink` field distinguishes it.
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
  /** Position of the message in its batch, counted from 0; -1 in records of earlier gateways. */
  messageIndex: number;
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

/** Headers of a parked fact and its copies. */
export const WAITING_HEADERS = {
  /** Decimal offset of the fact when it was first parked. Facts about one person are processed in this order. */
  firstOffset: 'first-offset',
  /** Identity keys of the fact for the eraser, 16 bytes each. */
  identityKeys: 'identity-keys',
  /**
   * Marks a record that contains offsets (eight big-endian bytes each) instead of a fact: the parked facts at these
   * offsets were returned to the link-fact topic, and a reader that restarts must skip them.
   */
  left: 'left',
} as const;

export const WAITING_OFFSET_BYTES = 8;

/** An identity in an event, with the times at which the event happened and was received. */
export interface FenceQuery {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}
