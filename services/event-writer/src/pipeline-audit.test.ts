import { accessKeyCodec, frameRecord, TOPICS } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import { createMemoryEventStore } from '@playline/events/memory';
import { createMetrics } from '@playline/runtime';
import { RetryableFault, type StreamRecord } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { describe, expect, it } from 'vitest';
import { createPipeline } from './pipeline.ts';

const KEYS = `test.${TOPICS.accessKeys.name}`;
/** Id of the key schema of a release in which keys had no names. */
const OLD_KEYS_ID = 6;
const NOT_LOADED: FenceSet = { loaded: false, mayHold: () => true, isFenced: () => true };
const { signal } = new AbortController();

const oldKeySchema = (() => {
  const schema = JSON.parse(accessKeyCodec.schema);
  const later = ['name', 'text', 'changedBy', 'requestId'];
  return JSON.stringify({
    ...schema,
    fields: schema.fields.filter(({ name }: { name: string }) => !later.includes(name)),
  });
})();

/** A key record of a release that did not store who made the key. */
const keyValue = () => {
  const key = { keyId: 'key-1', projectId: 'demo', environmentId: 'demo', environment: 'production', kind: 'secret' };
  const rest = { hash: 'HASH', first4: 'sk_a', last4: 'wxyz', createdAt: 1_000, revokedAt: null };
  const whole = accessKeyCodec.encode({ ...key, ...rest, name: '', text: null, changedBy: '', requestId: '' } as never);
  // Newer fields are at the end: three empty texts and a null, one byte each.
  return frameRecord(OLD_KEYS_ID, whole.subarray(0, -4));
};

const recordOf = (topic: string, value: Buffer): StreamRecord => ({
  ...{ topic, partition: 0, offset: 0, timestampMs: 0, key: null, value, headers: {} },
});

async function createTestPipeline() {
  const store = createMemoryEventStore();
  const schemas = { idOf: async () => Promise.reject(new Error('no registry')), schemaOf: async () => oldKeySchema };
  const deadLetters = createMemoryLog().openProducer();
  const options = { store, schemas, fences: NOT_LOADED, deadLetters, metrics: createMetrics('test') };
  return { store, pipeline: createPipeline({ ...options, topicPrefix: 'test.', blockBytesMax: 1_000 }) };
}

describe('the audit in the pipeline of the event writer', () => {
  it('reads what people did in topics of its own', async () => {
    const { pipeline } = await createTestPipeline();
    const access = Object.values(TOPICS).filter(({ name }) => name.startsWith('access.'));
    expect([...pipeline.auditTopics].sort()).toEqual(access.map(({ name }) => `test.${name}`).sort());
    expect(pipeline.topics.filter((topic) => pipeline.auditTopics.includes(topic))).toEqual([]);
  });

  it('derives the audit entry of a key record, also while the fences are not loaded', async () => {
    const { store, pipeline } = await createTestPipeline();
    const block = pipeline.sink.openBlock(KEYS, 0);
    expect(block.add(recordOf(KEYS, keyValue()))).toEqual({ kind: 'ok' });
    const name = { topic: KEYS, partition: 0, start: 0, end: 1, transformVersion: 1 };
    // Its schema is requested meanwhile.
    await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
    await block.write(name, signal);
    expect(store.blocks.map(({ token }) => token)).toEqual([`${KEYS}|0|0|0|0|audit_log|1`]);
    const bytes = store.blocks[0]!.rows;
    expect([bytes.includes('key.create'), bytes.includes('HASH')]).toEqual([true, false]);
  });
});
