import { messageRecordCodec } from '@playline/contracts';
import { expect, it } from 'vitest';
import { createBody, createMessage, MESSAGE_BYTES, toRecord } from './messages.ts';
import { createBodyOf, createRenewal, TRAFFICS } from './traffic.ts';

const NOW = new Date('2026-11-21T10:00:00.000Z');

it('every message of the figures has the size that the figures state', () => {
  for (let n = 0; n < 200; n += 1) {
    expect(Buffer.byteLength(JSON.stringify(createMessage(n, NOW)))).toBe(MESSAGE_BYTES);
  }
});

it('every message has its own id', () => {
  const { messages } = JSON.parse(createBody(0, 100, NOW).toString());
  expect(new Set(messages.map(({ messageId }: { messageId: string }) => messageId)).size).toBe(100);
});

it('records of messages fit the schema of the topic', () => {
  const record = toRecord(createMessage(20, NOW), 'test-bench');
  expect(messageRecordCodec.decode(messageRecordCodec.encode(record))).toMatchObject({ userId: record.userId });
});

it.each(TRAFFICS)('messages of the traffic "%s" have the same size and only the faults that it names', (traffic) => {
  for (let n = 0; n < 200; n += 20) {
    const { messages } = JSON.parse(createBodyOf(traffic, { n, size: 20, now: NOW }).toString());
    const bad = messages.filter(({ type }: { type: string }) => type === 'trak');
    expect(bad).toHaveLength(traffic === 'one bad a batch' ? 1 : 0);
    for (const message of messages) {
      const bytes = Buffer.byteLength(JSON.stringify(message));
      expect(bytes).toBeLessThanOrEqual(MESSAGE_BYTES);
      expect(bytes).toBeGreaterThan(MESSAGE_BYTES - 8);
    }
  }
});

it('every message and person has a new id each time a request is sent again', () => {
  const next = createRenewal([createBodyOf('every id new', { n: 0, size: 20, now: NOW })]);
  const ids = new Set<string>();
  for (let times = 0; times < 3; times += 1) {
    const { messages } = JSON.parse(next(0).toString());
    for (const { messageId, anonymousId } of messages) {
      expect(messageId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      ids.add(messageId).add(anonymousId);
    }
  }
  expect(ids.size).toBe(3 * 20 * 2);
});
