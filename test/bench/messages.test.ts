import { messageRecordCodec } from '@playline/contracts';
import { expect, it } from 'vitest';
import { createBody, createMessage, MESSAGE_BYTES, toRecord } from './messages.ts';

const NOW = new Date('2026-11-21T10:00:00.000Z');

it('gives every message of the figures the size that they state', () => {
  for (let n = 0; n < 200; n += 1) {
    expect(Buffer.byteLength(JSON.stringify(createMessage(n, NOW)))).toBe(MESSAGE_BYTES);
  }
});

it('gives every message an id of its own', () => {
  const { messages } = JSON.parse(createBody(0, 100, NOW).toString());
  expect(new Set(messages.map(({ messageId }: { messageId: string }) => messageId)).size).toBe(100);
});

it('gives records that the schema of the topic takes', () => {
  const record = toRecord(createMessage(20, NOW), 'test-bench');
  expect(messageRecordCodec.decode(messageRecordCodec.encode(record))).toMatchObject({ userId: record.userId });
});
