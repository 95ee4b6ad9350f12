import { ID_CHARACTERS_MAX, IDENTITY_TYPES, type Message, type MessageType } from './message.ts';
import type { AudienceClientOptions } from './options.ts';

/** What the service requires of a message of this type, besides what it requires of every message. */
const REQUIRED: { readonly [Type in MessageType]?: readonly (keyof Message)[] } = {
  track: ['eventName'],
  identify: ['userId'],
  alias: ['fromId', 'toId'],
};

/**
 * Finds what the service would certainly reject, so that the developer sees it at the call and not in an answer.
 * @returns a sentence; '' when there is no fault
 */
export function findFault(type: MessageType, fields: Partial<Message>): string {
  for (const name of REQUIRED[type] ?? []) if (fields[name] == null) return `${name} is missing.`;
  for (const [name, value] of Object.entries(fields)) {
    const fault = value == null ? '' : faultOf(name, value);
    if (fault !== '') return fault;
  }
  return type === 'alias' && fields.fromId?.trim() === fields.toId?.trim() ? 'fromId and toId are the same.' : '';
}

function faultOf(name: string, value: unknown): string {
  if (name === 'properties' || name === 'traits')
    return typeof value === 'object' && !Array.isArray(value) ? '' : `${name} must be an object.`;
  if (name.endsWith('Type'))
    return IDENTITY_TYPES.includes(value as never) ? '' : `${name} must be one of ${IDENTITY_TYPES.join(', ')}.`;
  return faultOfText(name, value);
}

function faultOfText(name: string, value: unknown): string {
  if (typeof value !== 'string') return `${name} must be text.`;
  if (value.trim() === '') return `${name} is empty.`;
  // Counted in code points, as the service does: an emoji is one.
  const { length } = [...value];
  if (length > ID_CHARACTERS_MAX) return `${name} has ${length} characters; ${ID_CHARACTERS_MAX} at most.`;
  // In other fields the service stores a replacement character. A changed id, however, would be another person's id.
  return name !== 'eventName' && /\p{Surrogate}/u.test(value) ? `${name} holds half a character.` : '';
}

/** @throws TypeError when a client with these options could never deliver anything */
export function checkOptions({ baseUrl, publishableKey, deviceId, sessionId }: AudienceClientOptions): void {
  const fault =
    (typeof baseUrl === 'string' ? '' : 'baseUrl must be the address of the service.') ||
    faultOfText('publishableKey', publishableKey) ||
    (publishableKey.startsWith('sk_') ? 'publishableKey is a secret key.' : '') ||
    findFault('page', { deviceId, sessionId });
  if (fault !== '') throw new TypeError(`openAudienceClient: ${fault}`);
}
