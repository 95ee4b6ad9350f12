import type { MessageType } from '@playline/contracts';
import { pickPage } from './contexts.ts';
import { type Properties, pickEvent, pickTraits } from './gameplay.ts';
import { type Identity, type LinkFact, ownerOf } from './persons.ts';
import type { Device } from './players.ts';
import type { Random } from './random.ts';
import { formatTimestamp } from './timestamps.ts';

/** A message before it becomes JSON text. */
export type Message = Record<string, unknown>;

export interface BuiltMessage {
  message: Message;
  owner: Identity | null;
  fact: LinkFact | null;
}

interface Base {
  readonly device: Device;
  readonly messageId: string;
  readonly timeMs: number;
  readonly random: Random;
}

/** Members of every message of a device, whatever its type. */
function createBase(type: MessageType, { device, messageId, timeMs, random }: Base): Message {
  const browser = device.surface === 'web' || device.surface === 'pixel';
  return {
    type,
    messageId,
    eventTimestamp: formatTimestamp(timeMs, device.timeStyle, random),
    anonymousId: device.anonymousId,
    ...(device.surface === 'pixel' ? {} : { deviceId: device.deviceId }),
    sessionId: device.sessionId,
    surface: device.surface,
    consentLevel: device.user === null ? 'anonymous' : 'full',
    ...(random.chance(0.02) ? { test: true } : {}),
    context: browser ? { ...device.context, ...pickPage(random) } : { ...device.context },
  };
}

/** Adds the device's user in its client's style. @returns the owner of the message */
function addUser(message: Message, device: Device): Identity | null {
  const { user, userStyle } = device;
  if (user === null || userStyle === 'none') return ownerOf(null, device.anonymousId);
  message.userId = user.id;
  const isUntyped = userStyle === 'untyped' || user.kind === 'untyped';
  if (!isUntyped) message.identityType = user.kind;
  return ownerOf(isUntyped ? { kind: 'untyped', id: user.id } : user, device.anonymousId);
}

/** A track, page or screen message: never a link, even with both ids. */
export function createPlay(base: Base): BuiltMessage {
  const { device, random } = base;
  const browser = device.surface === 'web' || device.surface === 'pixel';
  const type: MessageType = random.chance(browser ? 0.5 : 0.1) ? (browser ? 'page' : 'screen') : 'track';
  const message = createBase(type, base);
  if (type === 'track') {
    const { eventName, properties } = pickEvent(random);
    message.eventName = eventName;
    if (properties !== undefined) message.properties = properties;
  } else if (type === 'screen') {
    message.properties = {
      name: random.pick(['main_menu', 'inventory', 'map']),
      previous: 'loading',
    } satisfies Properties;
  }
  return { message, owner: addUser(message, device), fact: null };
}

/** An identify of the device's anonymous id as `user`. */
export function createIdentify(base: Base, user: Identity): BuiltMessage {
  const message = createBase('identify', base);
  message.userId = user.id;
  if (user.kind !== 'untyped') message.identityType = user.kind;
  message.traits = pickTraits(base.random);
  return {
    message,
    owner: ownerOf(user, base.device.anonymousId),
    fact: { link: 'identify', from: { kind: 'anonymous', id: base.device.anonymousId }, to: user },
  };
}

/** An alias; some clients send it without an anonymous id, and then the message has no owner. */
export function createAlias(base: Base, from: Identity, to: Identity): BuiltMessage {
  const message = createBase('alias', base);
  message.fromId = from.id;
  if (from.kind !== 'untyped') message.fromType = from.kind;
  message.toId = to.id;
  if (to.kind !== 'untyped') message.toType = to.kind;
  const fact: LinkFact = { link: 'alias', from, to };
  if (base.random.chance(0.5)) return { message, owner: { kind: 'anonymous', id: base.device.anonymousId }, fact };
  delete message.anonymousId;
  return { message, owner: null, fact };
}
