import { createLogger, openTracing } from '@playline/runtime';
import { useTraceReceiver } from '@playline/testkit';
import { expect, it } from 'vitest';
import type { BlockBuilder, BlockSink, StreamRecord } from '../ports.ts';
import { traceSink } from './trace-sink.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const BLOCK = { topic: 'messages', partition: 3, start: 7, end: 9, transformVersion: 1 };

const recordOf = (offset: number, traceparent?: string): StreamRecord => ({
  topic: 'messages',
  partition: 3,
  offset,
  timestampMs: 0,
  key: null,
  value: Buffer.alloc(1),
  headers: traceparent === undefined ? {} : { traceparent: Buffer.from(traceparent) },
});

function createSink(write: BlockBuilder['write']): BlockSink {
  const builder = { rows: 1, bytes: 1, add: () => ({ kind: 'ok' }) as const, write, release: () => {} };
  return { transformVersion: 1, openBlock: () => builder };
}

async function open(write: BlockBuilder['write'] = async () => {}) {
  const receiver = await useTraceReceiver();
  const logger = createLogger({ service: 'test', level: 'silent' });
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, OTEL_TRACES_SAMPLER_ARG: 1 };
  const tracing = (await openTracing(async (_, open) => open(), { service: 'event-writer', config, logger }))!;
  return { ...receiver, tracing, block: traceSink(createSink(write), tracing).openBlock('messages', 3) };
}

const SAMPLED = `00-${TRACE}-00f067aa0ba902b7-01`;

it('a recorded trace has one span per block, which ends when the rows are stored', async () => {
  const { tracing, block, spans } = await open();
  for (const record of [
    recordOf(7, SAMPLED),
    recordOf(8, SAMPLED),
    recordOf(9, SAMPLED.replace(/1$/, '0')),
    recordOf(10),
  ])
    block.add(record);
  expect(tracing.find(TRACE)).not.toBeNull();
  await block.write(BLOCK, new AbortController().signal);
  expect(tracing.find(TRACE)).toBeNull();
  block.release();
  await tracing.close();
  expect(spans).toHaveLength(1);
  expect(spans[0]).toMatchObject({ traceId: TRACE, parentSpanId: '00f067aa0ba902b7', isError: false });
  expect(spans[0]!.attributes).toMatchObject({ 'messaging.kafka.offset': 7, 'messaging.batch.message_count': 2 });
});

it('the spans of a block that another owner writes end as failed', async () => {
  const { tracing, block, spans } = await open(() => Promise.reject(new Error('the store is down')));
  block.add(recordOf(7, SAMPLED));
  await expect(block.write(BLOCK, new AbortController().signal)).rejects.toThrow('the store is down');
  block.release();
  await tracing.close();
  expect(spans).toMatchObject([{ isError: true }]);
});

it('without tracing, the sink is not wrapped', () => {
  const sink = createSink(async () => {});
  expect(traceSink(sink, null)).toBe(sink);
});
