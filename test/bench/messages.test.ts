import { messageRecordCodec } from '@playline/contracts';
import { expect, it } from 'vitest';
import { createBodyOf, createIdRenewer, createMessage, MESSAGE_BYTES, TRAFFICS, toRecord } from './messages.ts';

const NOW = new Date('2026-11-21T10:00:00.000Z');

it('a bench message converts to a record that conforms to the topic’s schema', () => {
  const record = toRecord(createMessage(20, NOW), 'test-bench');
  expect(messageRecordCodec.decode(messageRecordCodec.encode(record))).toMatchObject({ userId: record.userId });
});

it.each(TRAFFICS)(
  'createBodyOf("%s") creates messages with the expected size, distinct ids and only the expected errors',
  (traffic) => {
    for (let n = 0; n < 200; n += 20) {
      const { messages } = JSON.parse(createBodyOf(traffic, { n, size: 20, now: NOW }).toString());
      expect(new Set(messages.map(({ messageId }: { messageId: string }) => messageId)).size).toBe(20);
      const invalid = messages.filter(({ type }: { type: string }) => type === 'trak');
      expect(invalid).toHaveLength(traffic === 'one invalid message per batch' ? 1 : 0);
      for (const message of messages) {
        const missing = MESSAGE_BYTES - Buffer.byteLength(JSON.stringify(message));
        expect(missing).toBeGreaterThanOrEqual(0);
        expect(missing).toBeLessThan(traffic === 'usual' ? 1 : 8);
      }
    }
  },
);

it('createIdRenewer returns requests with new message ids and anonymous ids on each call', () => {
  const next = createIdRenewer([createBodyOf('new ids', { n: 0, size: 20, now: NOW })]);
  const ids = new Set<string>();
  for (let call = 0; call < 3; call += 1)
    for (const { messageId, anonymousId } of JSON.parse(next(0).toString()).messages) {
      expect(messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      ids.add(messageId).add(anonymousId);
    }
  expect(ids.size).toBe(3 * 20 * 2);
});
