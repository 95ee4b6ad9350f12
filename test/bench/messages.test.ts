import { messageRecordCodec } from '@playline/contracts';
import { expect, it } from 'vitest';
import {
  createBodyOf,
  createMessage,
  createRenewer,
  MESSAGE_BYTES,
  TRAFFICS,
  type Traffic,
  toRecord,
} from './messages.ts';

const NOW = new Date('2026-11-21T10:00:00.000Z');

it('a bench message converts to a record that conforms to the topic’s schema', () => {
  const record = toRecord(createMessage(20, NOW), 'test-bench');
  expect(messageRecordCodec.decode(messageRecordCodec.encode(record))).toMatchObject({ userId: record.userId });
});

it.each([...TRAFFICS, 'new messages'] as const)(
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

it('createRenewer returns requests with new message ids, and either new players or new times, on each call', () => {
  const messagesOf = (traffic: Traffic) => {
    const next = createRenewer(traffic, [createBodyOf(traffic, { n: 0, size: 20, now: NOW })]);
    return [0, 1, 2].flatMap(() => JSON.parse(next(0).toString()).messages as Record<string, string>[]);
  };
  const distinct = (messages: Record<string, string>[], name: string) => new Set(messages.map((m) => m[name])).size;
  const [players, messages, usual] = [messagesOf('new ids'), messagesOf('new messages'), messagesOf('usual')];
  expect(players.every(({ messageId = '' }) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(messageId))).toBe(
    true,
  );
  expect([players, messages, usual].map((list) => distinct(list, 'messageId'))).toEqual([60, 60, 20]);
  expect([players, messages, usual].map((list) => distinct(list, 'anonymousId'))).toEqual([60, 20, 20]);
  expect(messages.every(({ eventTimestamp = '' }) => Date.parse(eventTimestamp) > NOW.getTime())).toBe(true);
});
