import { randomUUID } from 'node:crypto';

/** A message as a client sends it: any JSON, right or wrong. */
export type SmallMessage = Record<string, unknown> & { readonly messageId: string };

/** What a type needs besides what all types need. */
const needed: Readonly<Record<string, () => Record<string, unknown>>> = {
  track: () => ({ eventName: 'level_started' }),
  identify: () => ({ userId: `user-${randomUUID()}` }),
  alias: () => ({ fromId: `from-${randomUUID()}`, toId: `to-${randomUUID()}` }),
};

/**
 * The least that the contract asks of a message, under an id of its own and at the present time.
 * @param fields are added, replace a field, or (with undefined) remove it
 */
export function smallMessage(type: string, fields: Readonly<Record<string, unknown>> = {}): SmallMessage {
  const all = { type, messageId: randomUUID(), eventTimestamp: new Date().toISOString() };
  return { ...all, ...needed[type]?.(), ...fields };
}
