import {
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  type IdentityType,
  type MessageRecord,
} from '@playline/contracts';

/** The fields that a link fact needs; a `MessageRecord` has all of them. */
export type LinkSource = Pick<
  MessageRecord,
  'environmentId' | 'messageId' | 'anonymousId' | 'userId' | 'fromId' | 'toId' | 'eventTime' | 'receivedAt' | 'traceId'
> & { type: string; identityType: string; fromType: string; toType: string };

const NO_IDENTITY: IdentityLinkRecord['unlink'] = [];

/** Kind of an id that came with this type; '' when it came without one. */
export function toIdentityKind(type: string): IdentityKind {
  return type === '' ? 'untyped' : (type as IdentityType);
}

/**
 * Kind of the `fromId` of an alias. Without a type it is untyped, unless it is the message's own anonymous id: a client
 * that aliases itself names its anonymous identity.
 */
function toFromKind({ fromType, fromId, anonymousId }: LinkSource): IdentityKind {
  return fromType === '' && fromId.trim() === anonymousId.trim() ? 'anonymous' : toIdentityKind(fromType);
}

/**
 * The link fact of an accepted message, or null when it links nobody: only identify and alias do, and an identify
 * without an anonymous id only when its user id is typed, because the same id text without a type is linked to it.
 * Such a fact carries `fromId` '' (and `fromKind` anonymous, which then means nothing).
 */
export function toLinkFact(message: LinkSource): IdentityLinkRecord | null {
  const { environmentId, messageId, eventTime, receivedAt, traceId } = message;
  const origin = { environmentId, messageId, eventTime, receivedAt, traceId, unlink: NO_IDENTITY };
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

/**
 * Fields of an unlink fact. Times are epoch milliseconds: facts that happened or were received up to then do not undo
 * the unlink.
 */
export type UnlinkParts = Pick<IdentityLinkRecord, 'environmentId' | 'messageId' | 'receivedAt' | 'traceId' | 'unlink'>;

/**
 * Creates the fact that splits identities off from the rest of their person. Its own two sides are one id that no client
 * can send.
 */
export function toUnlinkFact({ messageId, ...parts }: UnlinkParts): IdentityLinkRecord {
  const nobody = `unlink ${messageId.toString('hex')}`;
  const sides = { fromKind: 'custom', fromId: nobody, toKind: 'custom', toId: nobody } as const;
  return { ...parts, messageId, link: 'alias', ...sides, eventTime: parts.receivedAt };
}

/** An operator's answer to a held id: `allow` it to gather anonymous ids, or `block` it, so that it links nobody. */
export interface Ruling {
  readonly verdict: 'allow' | 'block';
  readonly key: Buffer;
  readonly kind: IdentityKind;
}

const RULING = /^ruling (allow|block) (\w+) ([0-9a-f]{32})$/;

/**
 * Creates the fact of a ruling. Its ids are one text, which no message of a client can have: an alias of itself is
 * rejected. A release that knows no rulings decides that nothing changes.
 */
export function toRulingFact({ verdict, key, kind }: Ruling, parts: Omit<UnlinkParts, 'unlink'>): IdentityLinkRecord {
  const text = `ruling ${verdict} ${kind} ${key.toString('hex')}`;
  const sides = { fromKind: 'custom', fromId: text, toKind: 'custom', toId: text } as const;
  return { ...parts, link: 'alias', ...sides, eventTime: parts.receivedAt, unlink: NO_IDENTITY };
}

/** The ruling of a fact; null of any other fact. */
export function rulingOf({ link, fromKind, fromId, toKind, toId }: IdentityLinkRecord): Ruling | null {
  if (link !== 'alias' || fromId !== toId || fromKind !== toKind) return null;
  const [, verdict, name, key = ''] = RULING.exec(toId) ?? [];
  const kind = IDENTITY_KINDS.find((each) => each === name);
  if (kind === undefined) return null;
  return { verdict: verdict as Ruling['verdict'], key: Buffer.from(key, 'hex'), kind };
}
