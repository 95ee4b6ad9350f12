/** Typical valid batches of any size, as a baseline. */
import { randomUUID } from 'node:crypto';
import { createMessage, fillWithFields } from '../../bench/messages.ts';

const MESSAGES_MAX = 100;
const USUAL_BYTES = 941;

const stepOf = (n: number) => ({
  at: 1_000 + n * 16,
  x: 102.25 + n,
  y: -8.5,
  weapon: 'longbow_of_dusk',
  hit: n % 3 === 0,
});

// Creates a valid batch of about `bytes` bytes with up to 100 messages, which have the usual size if possible.
export function typicalBody(bytes: number, now: Date): Buffer {
  const count = Math.min(MESSAGES_MAX, Math.max(1, Math.floor(bytes / USUAL_BYTES)));
  const perMessage = Math.floor(bytes / count);
  const small = () => ({ type: 'page', messageId: randomUUID(), eventTimestamp: now.toISOString() });
  const messages = Array.from({ length: count }, (_, n) => {
    const path: unknown[] = [];
    const message = perMessage < USUAL_BYTES ? small() : createMessage(n, now);
    if (perMessage >= USUAL_BYTES && 'sessionId' in message) fillWithFields(message);
    let size = JSON.stringify(message).length + ',"path":[]'.length;
    for (let step = 0; size < perMessage; step++) {
      path.push(stepOf(step));
      size += JSON.stringify(stepOf(step)).length + 1;
    }
    return path.length > 1 ? { ...message, properties: { path } } : message;
  });
  return Buffer.from(JSON.stringify({ messages }));
}
