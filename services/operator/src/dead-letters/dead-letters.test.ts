import { type StreamRecord, toDeadLetter } from '@playline/stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  parseDeadLetter,
  parseOutcome,
  parsePosition,
  toDump,
  toOutcomeRecord,
  toPositionText,
  toPrintable,
  toReplayRecord,
} from './dead-letters.ts';

const bytes = fc.uint8Array({ maxLength: 40 }).map((data) => Buffer.from(data));
const record: fc.Arbitrary<StreamRecord> = fc.record({
  topic: fc.constantFrom('audience.messages.v1', 'prefix.audience.consents.v1'),
  partition: fc.nat(65_535),
  offset: fc.nat(),
  timestampMs: fc.nat(),
  key: fc.option(bytes),
  value: bytes,
  headers: fc.constantFrom({}, { traceparent: Buffer.from('00-a-b-01') }),
});

const logged = (headers: Readonly<Record<string, string | Buffer>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value)]));

it('toReplayRecord restores the topic, partition, key, value and trace of the original record', () => {
  fc.assert(
    fc.property(record, fc.nat(5), fc.nat(), (original, partition, offset) => {
      const sent = toDeadLetter({ record: original, reason: 'poison' }, 'transform');
      const { topic, key, value, headers } = sent;
      const dead = { topic, partition, offset, timestampMs: 1, key, value, headers: logged(headers ?? {}) };
      const deadLetter = parseDeadLetter(dead)!;
      expect(deadLetter.original).toEqual({
        topic: original.topic,
        partition: original.partition,
        offset: original.offset,
      });
      const replay = toReplayRecord(deadLetter);
      expect(replay).toMatchObject({ topic: original.topic, key: original.key, value: original.value });
      expect(replay.partition).toBe(original.key === null ? original.partition : undefined);
      expect(replay.headers).toEqual({ ...original.headers, 'replayed-from': toPositionText(deadLetter.position) });
      expect(parsePosition(toPositionText(deadLetter.position))).toEqual(deadLetter.position);
    }),
  );
});

it('parseDeadLetter returns null for an outcome record', () => {
  const position = { topic: 'a.dead', partition: 2, offset: 7 };
  const outcome = { kind: 'dropped', atMs: 5, note: 'äh' } as const;
  const { headers, ...outcomeRecord } = toOutcomeRecord({ position }, outcome);
  const read = { ...outcomeRecord, partition: 2, offset: 9, timestampMs: 5, headers: logged(headers) };
  expect(parseOutcome(read)).toEqual({ offset: 7, outcome });
  expect(parseDeadLetter(read)).toBeNull();
});

it('parseDeadLetter refuses headers that would redirect a dead letter to another topic', () => {
  const headers = logged({ 'original-topic': 'access.keys.v1', 'original-partition': '0', 'original-offset': '1' });
  const forged = {
    topic: 'audience.messages.v1.dead',
    partition: 0,
    offset: 0,
    timestampMs: 0,
    key: null,
    value: null,
  };
  expect(parseDeadLetter({ ...forged, headers })).toBeNull();
  expect(parseDeadLetter({ ...forged, topic: 'access.keys.v1.dead', headers })).not.toBeNull();
});

it('dead-letters show does not print terminal control characters', () => {
  expect(toPrintable('a\u001b[2Jb\n')).toBe('a·[2Jb·');
  expect(toDump(Buffer.from('ab\u001b')).join()).toBe(`  000000  61 62 1b ${' '.repeat(39)} ab.`);
  expect(toDump(Buffer.alloc(0))).toEqual(['  (empty)']);
});
