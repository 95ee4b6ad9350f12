import { FRAME_BYTES, type RejectionRecord, rejectionCodec, schemaIdOf } from '@playline/contracts';
import { createMetrics } from '@playline/runtime';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BatchRejections, createPublishRejections, type PublishRejectionsOptions } from './rejections.ts';
import { createTestProducer } from './test/open-gateway.ts';

const TOPIC = 'test.audience.rejections.v1';
const BYTES_MAX = 10_000;
const rejection: RejectionRecord = {
  environmentId: 'demo-test',
  code: 'INVALID_ENUM',
  field: 'surface',
  surface: '',
  library: 'web',
  libraryVersion: '1',
  receivedAt: 1_790_000_000_000,
  traceId: 'a'.repeat(32),
  messageIndex: 0,
};
const createBatch = (errors: number, omitted = 0): BatchRejections => ({
  records: Array.from({ length: errors }, () => rejection),
  omitted,
});

function openPublisher(options: Partial<PublishRejectionsOptions> = {}) {
  const producer = createTestProducer();
  producer.mode = 'hold';
  const metrics = createMetrics('test');
  const publish = createPublishRejections({
    producer,
    topic: TOPIC,
    schemaId: () => 3,
    metrics,
    bytesMax: BYTES_MAX,
    ...options,
  });
  const sumOf = async (pattern: RegExp) =>
    [...(await metrics.text()).matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
  return {
    producer,
    publish: (batch: BatchRejections, logBytesMax = Number.POSITIVE_INFINITY) => publish(batch, logBytesMax),
    waitingBytes: () => sumOf(/^playline_gateway_rejections_waiting_bytes\S* (\S+)$/gm),
    dropped: (reason = '') =>
      sumOf(new RegExp(`^playline_gateway_rejections_dropped_total\\S*${reason}\\S* (\\S+)$`, 'gm')),
    sentCount: () => producer.sent.reduce((sum, { records }) => sum + records.length, 0),
  };
}

it('the rejection publisher writes one record per error, keyed by environment, with the trace id', () => {
  const { publish, producer } = openPublisher();
  publish({ records: [rejection, { ...rejection, field: 'type' }], omitted: 0 });
  const records = producer.sent[0]?.records ?? [];
  expect(records.map(({ topic, key, headers }) => [topic, key?.toString(), headers])).toEqual([
    // The trace id is in the value, so there are no headers.
    [TOPIC, 'demo-test', undefined],
    [TOPIC, 'demo-test', undefined],
  ]);
  expect(records.map(({ value }) => schemaIdOf(value))).toEqual([3, 3]);
  expect(records.map(({ value }) => rejectionCodec.decode(value.subarray(FRAME_BYTES)))).toEqual([
    rejection,
    { ...rejection, field: 'type' },
  ]);
});

it('the rejection publisher writes as many errors as the batch’s log limit allows, and counts the rest', async () => {
  const { publish, producer, dropped, sentCount } = openPublisher();
  publish(createBatch(50), 1_000);
  const bytes = producer.sent[0]!.records.reduce((sum, { key, value }) => sum + key!.length + value.length, 0);
  expect(bytes).toBeLessThanOrEqual(1_000);
  expect(bytes).toBeGreaterThan(700);
  expect(await dropped('batch')).toBe(50 - sentCount());
  publish(createBatch(1), 0);
  expect(producer.sent).toHaveLength(1);
  expect(await dropped('batch')).toBe(51 - sentCount());
});

it('the rejection publisher drops and counts errors beyond its memory limit while the producer does not acknowledge', async () => {
  const { publish, producer, waitingBytes, dropped, sentCount } = openPublisher();
  for (let batch = 0; batch < 100; batch++) publish(createBatch(5));
  expect(sentCount()).toBeGreaterThan(0);
  expect(await waitingBytes()).toBeLessThanOrEqual(BYTES_MAX);
  expect(await dropped('budget')).toBe(500 - sentCount());
  // Settled records free their memory.
  for (const { done } of producer.sent) done(null);
  expect(await waitingBytes()).toBe(0);
  const before = sentCount();
  publish(createBatch(5));
  expect(sentCount()).toBe(before + 5);
});

it('the rejection publisher respects its memory limit and counts each error once, in any order of calls', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('publish' as const), errors: fc.nat(40), omitted: fc.nat(3) }),
    fc.record({ kind: fc.constant('settle' as const), isFailure: fc.boolean() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { publish, producer, waitingBytes, dropped, sentCount } = openPublisher();
      let [total, failed, settled] = [0, 0, 0];
      for (const action of steps) {
        if (action.kind === 'publish') {
          publish(createBatch(action.errors, action.omitted));
          total += action.errors + action.omitted;
        } else if (settled < producer.sent.length) {
          const { records, done } = producer.sent[settled++]!;
          done(action.isFailure ? new Error('NOT_LEADER') : null);
          failed += action.isFailure ? records.length : 0;
        }
        expect(await waitingBytes()).toBeLessThanOrEqual(BYTES_MAX);
      }
      expect(await dropped('fault')).toBe(failed);
      expect(sentCount() + (await dropped()) - failed).toBe(total);
      for (const { done } of producer.sent.slice(settled)) done(null);
      expect(await waitingBytes()).toBe(0);
    }),
    { numRuns: 50 },
  );
});

it('the rejection publisher counts records that the brokers or the producer refused, and frees their memory', async () => {
  const refused = openPublisher();
  refused.publish(createBatch(2));
  refused.producer.sent[0]?.done(new Error('refused'));
  // A producer that settles twice must not free the memory twice.
  refused.producer.sent[0]?.done(new Error('refused'));
  expect([await refused.dropped('fault'), await refused.waitingBytes()]).toEqual([2, 0]);

  const throwing = openPublisher({
    producer: {
      send: () => {
        throw new Error('closed');
      },
    },
  });
  throwing.publish(createBatch(3));
  expect([await throwing.dropped('fault'), await throwing.waitingBytes()]).toEqual([3, 0]);

  const broken = openPublisher();
  broken.publish({ records: [{ ...rejection, field: undefined as unknown as string }], omitted: 0 });
  expect([await broken.dropped('fault'), await broken.waitingBytes()]).toEqual([1, 0]);
});

it('the rejection publisher drops and counts all errors until the registry has returned the schema id', async () => {
  const { publish, producer, dropped } = openPublisher({ schemaId: () => null });
  publish(createBatch(4, 2));
  expect(producer.sent).toEqual([]);
  expect([await dropped('schema'), await dropped('batch')]).toEqual([4, 2]);
});

it('the rejection publisher copies records out of shared buffers', () => {
  const { publish, producer } = openPublisher();
  publish(createBatch(3));
  const records = producer.sent[0]?.records ?? [];
  const buffers = records.flatMap(({ key, value }) => [key!, value]);
  const bytes = buffers.reduce((sum, { length }) => sum + length, 0);
  for (const { buffer } of buffers) expect(buffer.byteLength).toBe(bytes);
});
