import { frameRecord } from '@playline/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RATE_LIMIT_KEYS, type RateLimitKeyRecord } from '../rate-limit-keys/rate-limit-key.ts';
import { createLogDecoder, type LoggedBytes, UnreadableRecord } from './record-log.ts';

const { codec, topic } = RATE_LIMIT_KEYS;
const recordOf = (keyId: string, calls: number): RateLimitKeyRecord => ({
  keyId,
  calls,
  partner: 'Acme',
  windowS: 60,
  expiresAt: null,
  revokedAt: null,
  hash: 'h',
  first4: 'abcd',
  last4: 'wxyz',
  createdAt: 1,
  revision: 1,
  changedAt: 1,
  changedBy: 'ada',
  requestId: 'r',
});

/** Type of a log entry: a readable record, unreadable bytes, or a tombstone. */
type EntryType = 'record' | 'unreadable' | 'tombstone';
const bytesOf = (written: EntryType, key: string, offset: number) => {
  if (written === 'tombstone') return null;
  return written === 'record' ? frameRecord(7, codec.encode(recordOf(key, offset + 1))) : Buffer.from('not a record');
};

async function decodeAll(records: readonly LoggedBytes[]) {
  const decode = createLogDecoder(codec, { schemaOf: async () => codec.schema, topic });
  const seen: (number | null)[] = [];
  try {
    for await (const { record } of decode(records)) seen.push(record?.calls ?? null);
    return { seen, fault: null };
  } catch (fault) {
    return { seen, fault };
  }
}

describe('the log decoder', () => {
  it('yields every readable record, and throws for an unreadable record that is the last with its key', async () => {
    const log = fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        partition: fc.constantFrom(0, 1),
        written: fc.constantFrom<EntryType>('record', 'record', 'unreadable', 'tombstone'),
      }),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(log, async (list) => {
        const records = list.map(({ key, partition, written }, offset) => ({
          partition,
          offset,
          key: Buffer.from(key),
          value: bytesOf(written, key, offset),
        }));
        const { seen, fault } = await decodeAll(records);
        expect(seen).toEqual(list.map(({ written }, offset) => (written === 'record' ? offset + 1 : null)));
        const isLast = ({ key, partition }: (typeof list)[number], at: number) =>
          !list.slice(at + 1).some((each) => each.key === key && each.partition === partition);
        const unresolved = list.flatMap((each, at) => (each.written === 'unreadable' && isLast(each, at) ? [at] : []));
        if (unresolved.length === 0) expect(fault).toBeNull();
        else expect(unresolved).toContain((fault as UnreadableRecord).position.offset);
      }),
    );
  });

  it('reports the partition, the offset and the command that skips the record', async () => {
    const { fault } = await decodeAll([{ partition: 3, offset: 17, key: Buffer.from('a'), value: Buffer.from('x') }]);
    expect(fault).toBeInstanceOf(UnreadableRecord);
    const { message } = fault as UnreadableRecord;
    expect(message).toContain(`a record of ${topic} cannot be read: no schema id (partition 3, offset 17)`);
    expect(message).toContain(`npm run keys -- skip-record --topic ${topic} --partition 3 --offset 17`);
  });
});
