import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openMemoryErasureRecords } from '../test/memory/records.ts';
import { newEnvironment, newKey } from '../test/people.ts';
import { putErased } from '../test/stores.ts';
import { type PartitionBounds, recordLogExpiry } from './verify-receipt.ts';

const DUE = Date.UTC(2026, 5, 18);
const TOPIC = 'audience.messages.v1';

/** Stores a receipt with these log ends and creates a log with these bounds. */
async function createCase(logEnds: Record<string, number>, topics: Record<string, PartitionBounds[]>) {
  const records = openMemoryErasureRecords();
  const person = { environmentId: newEnvironment(), keys: [newKey()] };
  const id = await putErased(records, { ...person, receipt: { logEnds, logExpiresAt: DUE } });
  const queried: string[] = [];
  const log = {
    bounds: async (topic: string) => {
      queried.push(topic);
      return topics[topic] ?? [];
    },
  };
  const record = async (atMs: number) => {
    await recordLogExpiry({ records, log, topicPrefix: 'eu.', wallClockMs: () => atMs });
    return (await records.readReceipt(id))!.logExpiredAt;
  };
  return { records, id, record, queried, log };
}

const at = (partition: number, start: number, end: number) => ({ partition, start, end });

describe('recordLogExpiry', () => {
  it.each([
    ['starts after the end offset', [at(0, 11, 90)], 10, true],
    ['starts at the end offset', [at(0, 10, 90)], 10, true],
    ['has become empty', [at(0, 10, 10)], 10, true],
    ['was empty when the fences were set', [at(0, 0, 50)], 0, true],
    ['still contains the last record', [at(0, 9, 90)], 10, false],
    // Recreated or truncated.
    ['ends before the end offset', [at(0, 0, 9)], 10, true],
    ['no longer exists', [], 10, true],
    ['has lost the partition', [at(1, 50, 50)], 10, true],
  ])(
    'recordLogExpiry handles a log that %s and never records an expiry before logExpiresAt',
    async (_what, bounds, end, isExpired) => {
      const { record } = await createCase({ [`${TOPIC}/0`]: end }, { [`eu.${TOPIC}`]: bounds });
      // Late records may have offsets after the end offset.
      expect(await record(DUE - 1)).toBeNull();
      expect(await record(DUE)).toBe(isExpired ? DUE : null);
    },
  );

  it('a log has expired once every partition of every topic has expired', async () => {
    const position = fc.record({ end: fc.nat(20), start: fc.nat(20), partition: fc.nat(3), second: fc.boolean() });
    const property = fc.asyncProperty(fc.array(position, { minLength: 1, maxLength: 6 }), async (positions) => {
      const ends: Record<string, number> = {};
      const topics: Record<string, PartitionBounds[]> = {};
      const isLeft: boolean[] = [];
      for (const { end, start, partition, second } of positions) {
        const topic = second ? 'access.keys.v1' : TOPIC;
        if (`${topic}/${partition}` in ends) continue;
        ends[`${topic}/${partition}`] = end;
        const own = topics[`eu.${topic}`] ?? [];
        topics[`eu.${topic}`] = [...own, at(partition, start, 100)];
        isLeft.push(start < end);
      }
      const { record, queried } = await createCase(ends, topics);
      expect((await record(DUE)) !== null).toBe(!isLeft.includes(true));
      expect(queried.length).toBe(new Set(queried).size);
    });
    await fc.assert(property);
  });

  it('recordLogExpiry changes only logExpiredAt, and changes nothing while the log is unreachable', async () => {
    const { records, id, record, log } = await createCase({ [`${TOPIC}/0`]: 10 }, { [`eu.${TOPIC}`]: [at(0, 10, 20)] });
    const unavailable = { bounds: async () => Promise.reject(new Error('Kafka is unavailable')) };
    const before = await records.readReceipt(id);
    const options = { records, topicPrefix: 'eu.', wallClockMs: () => DUE };
    await expect(recordLogExpiry({ ...options, log: unavailable })).rejects.toThrow('Kafka is unavailable');
    expect(await records.readReceipt(id)).toEqual(before);
    expect(await recordLogExpiry({ ...options, log })).toEqual({ recorded: 1, waiting: 0 });
    expect(await records.readReceipt(id)).toEqual({ ...before, logExpiredAt: DUE });
    expect(await record(DUE + 5)).toBe(DUE);
  });
});
