import { type AccessKeyRecord, accessKeyCodec, frameRecord, TOPICS } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import { createMemoryEventStore } from '@playline/events/memory';
import { createMetrics } from '@playline/runtime';
import { RetryableFault, type StreamRecord } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { describe, expect, it } from 'vitest';
import { createPipeline } from './pipeline.ts';

const KEYS = `test.${TOPICS.accessKeys.name}`;
const NOT_LOADED: FenceSet = { loaded: false, mayHold: () => true, isFenced: () => true };
const { signal } = new AbortController();

const KEY: AccessKeyRecord = {
  ...{ id: 'demo/secret', revision: 1, projectId: 'demo', environmentId: 'demo', environment: 'production' },
  ...{ kind: 'secret', ended: [], action: 'create', changedAt: 1_000, changedBy: 'ada', requestId: 'r' },
  live: {
    ...{ keyId: 'key-1', hash: 'HASH', first4: 'sk_a', last4: 'wxyz', name: '', createdAt: 1_000 },
    ...{ changedBy: 'ada', text: null, origins: [] },
  },
};

const recordOf = (topic: string, value: Buffer): StreamRecord => ({
  ...{ topic, partition: 0, offset: 0, timestampMs: 0, key: null, value, headers: {} },
});

async function createTestPipeline() {
  const store = createMemoryEventStore();
  const schemas = {
    idOf: async () => Promise.reject(new Error('no registry')),
    schemaOf: async () => accessKeyCodec.schema,
  };
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
    expect(block.add(recordOf(KEYS, frameRecord(6, accessKeyCodec.encode(KEY))))).toEqual({ kind: 'ok' });
    const name = { topic: KEYS, partition: 0, start: 0, end: 1, transformVersion: 1 };
    // Its schema is requested meanwhile.
    await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
    await block.write(name, signal);
    expect(store.blocks.map(({ token }) => token)).toEqual([`${KEYS}|0|0|0|0|audit_log|1`]);
    const bytes = store.blocks[0]!.rows;
    expect([bytes.includes('key.create'), bytes.includes('HASH')]).toEqual([true, false]);
  });
});
