import { eventContextSchema, messageSchema } from '@playline/contracts';

/** Edge-case values that at least one rule of the contract treats specially. */
export const EDGE_VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -0, 2.625, 1e21, [], {}, { library: 'l', libraryVersion: '1' }],
  ...[{ library: '', libraryVersion: '1' }, '', ' ', '\u3000', '\ufeff', '\u1680', '\u2003', '\u00a0x', 'x '],
  ...['x\ufeff', '\u0085', '\u200b', 'か', '\u3000か', '"', '\\', 'a\nb', '\u0000', '\ud800', '\udc00x', '😀', '/'],
  ...['a'.repeat(256), 'a'.repeat(257), 'é'.repeat(128), 'é'.repeat(129), '😀'.repeat(257), 'a'.repeat(512)],
  ...['a'.repeat(513), 'a'.repeat(2048), 'a'.repeat(2049), 'é'.repeat(1025), '"'.repeat(200), 'track', 'page'],
  ...['screen', 'identify', 'alias', 'group', 'web', 'steam', 'full', 'not_set', 'Web', '76561198000000000'],
  ...['email|5f0e7b1c9d3a4e2b8c6d', '0192f1c0-7b3a-7c4d-8e5f-00000000000A', '0192f1c0-7b3a-7c4d-8e5f-00000000000g'],
  ...['0192f1c07b3a7c4d8e5f00000000000a', '{192f1c0-7b3a-7c4d-8e5f-00000000000}', '2026-11-21T12:00:00Z'],
  ...['2026-11-21 12:00:00Z', '1999-01-01T00:00:00Z'],
];

/** All fields of a message and of its context. */
export const EDGE_LOCATIONS: readonly (readonly ['message' | 'context', string])[] = [
  ...Object.keys(messageSchema.shape).map((name) => ['message', name] as const),
  ...Object.keys(eventContextSchema.shape).map((name) => ['context', name] as const),
];

/** Returns a copy of a message with `value` in one field. */
export function withEdgeValue(
  message: Record<string, unknown>,
  [where, name]: (typeof EDGE_LOCATIONS)[number],
  value: unknown,
): Record<string, unknown> {
  if (where === 'message') return { ...message, [name]: value };
  return {
    ...message,
    context: { library: 'l', libraryVersion: '1', ...(message.context as object | null), [name]: value },
  };
}
