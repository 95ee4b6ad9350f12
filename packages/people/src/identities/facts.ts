import {
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  type IdentityType,
  type MessageRecord,
} from '@playline/contracts';

/** The `MessageRecord` fields from which link facts are created. */
export type LinkSource = Pick<
  MessageRecord,
  'environmentId' | 'messageId' | 'anonymousId' | 'userId' | 'fromId' | 'toId' | 'eventTime' | 'receivedAt' | 'traceId'
> & { type: string; identityType: string; fromType: string; toType: string };

const NO_UNLINK: IdentityLinkRecord['unlink'] = [];

/** Converts an identity type to a kind. '' means that the id has no type. */
export function toIdentityKind(type: string): IdentityKind {
  return type === '' ? 'untyped' : (type as IdentityType);
}

/**
 * Kind of an alias's `fromId`. Without `fromType`, the kind is `anonymous` if the id equals the message's anonymous id,
 * otherwise `untyped`.
 */
function toFromKind({ fromType, fromId, anonymousId }: LinkSource): IdentityKind {
  return fromType === '' && fromId.trim() === anonymousId.trim() ? 'anonymous' : toIdentityKind(fromType);
}

/**
 * Creates the link fact for an accepted message, or returns null. A typed identify without an anonymous id has an empty
 * `fromId` and links the user id only with the same untyped id.
 */
export function toLinkFact(message: LinkSource): IdentityLinkRecord | null {
  const { environmentId, messageId, eventTime, receivedAt, traceId } = message;
  const origin = { environmentId, messageId, eventTime, receivedAt, traceId, unlink: NO_UNLINK };
  if (message.type === 'alias')
    return {
      ...origin,
      link: 'alias',
      fromKind: toFromKind(message),
      fromId: message.fromId.trim(),
      toKind: toIdentityKind(message.toType),
      toId: message.toId.trim(),
    };
  if (message.type !== 'identify') return null;
  const fromId = message.anonymousId.trim();
  const toId = message.userId.trim();
  if (toId === '' || (fromId === '' && message.identityType === '')) return null;
  return {
    ...origin,
    link: 'identify',
    fromKind: 'anonymous',
    fromId,
    toKind: toIdentityKind(message.identityType),
    toId,
  };
}

/** Fields of an unlink fact. Facts not later than `receivedAt` cannot undo the unlink. */
export type UnlinkParts = Pick<IdentityLinkRecord, 'environmentId' | 'messageId' | 'receivedAt' | 'traceId' | 'unlink'>;

/** Creates an unlink fact. It is encoded as an alias of an id with itself, which clients cannot send. */
export function toUnlinkFact({ messageId, ...parts }: UnlinkParts): IdentityLinkRecord {
  const unlinkId = `unlink ${messageId.toString('hex')}`;
  const sides = { fromKind: 'custom', fromId: unlinkId, toKind: 'custom', toId: unlinkId } as const;
  return { ...parts, messageId, link: 'alias', ...sides, eventTime: parts.receivedAt };
}

/** An operator's ruling on a held id: allow the id to link many anonymous ids, or block its links. */
export interface Ruling {
  readonly verdict: 'allow' | 'block';
  readonly key: Buffer;
  readonly kind: IdentityKind;
}

const RULING = /^ruling (allow|block) (\w+) ([0-9a-f]{32})$/;

/** Creates a ruling fact. It is encoded as an alias of an id with itself, which clients cannot send. */
export function toRulingFact({ verdict, key, kind }: Ruling, parts: Omit<UnlinkParts, 'unlink'>): IdentityLinkRecord {
  const rulingId = `ruling ${verdict} ${kind} ${key.toString('hex')}`;
  const sides = { fromKind: 'custom', fromId: rulingId, toKind: 'custom', toId: rulingId } as const;
  return { ...parts, link: 'alias', ...sides, eventTime: parts.receivedAt, unlink: NO_UNLINK };
}

/** Returns the ruling in a fact, or null. */
export function rulingOf({ link, fromKind, fromId, toKind, toId }: IdentityLinkRecord): Ruling | null {
  if (link !== 'alias' || fromId !== toId || fromKind !== toKind) return null;
  const [, verdict, name, key = ''] = RULING.exec(toId) ?? [];
  const kind = IDENTITY_KINDS.find((each) => each === name);
  if (kind === undefined) return null;
  return { verdict: verdict as Ruling['verdict'], key: Buffer.from(key, 'hex'), kind };
}
