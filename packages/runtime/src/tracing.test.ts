import { useTraceReceiver } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createLogger } from './logger.ts';
import { openOtlpTracing } from './otlp-tracing.ts';
import { openTracing, type Tracing } from './tracing.ts';

const logger = createLogger({ service: 'test', level: 'silent' });
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

async function open(ratio = 1) {
  const receiver = await useTraceReceiver();
  const tracing: Tracing = openOtlpTracing({ service: 'gateway', endpoint: receiver.endpoint, ratio, logger });
  return { ...receiver, tracing };
}

it('without an endpoint, no tracing is opened', async () => {
  const use = () => expect.fail('unexpected component');
  expect(await openTracing(use, { service: 'test', config: { OTEL_TRACES_SAMPLER_ARG: 1 }, logger })).toBeNull();
});

it('spans are exported with OTLP over HTTP, and a header continues a trace in another process', async () => {
  const { tracing, spans } = await open();
  const request = tracing.start({ name: 'request', kind: 'server' }, `00-${TRACE}-00f067aa0ba902b7-00`);
  request.set({ 'http.response.status_code': 200 });
  const stored = tracing.resume({ name: 'store', kind: 'consumer' }, Buffer.from(request.traceparent));
  stored?.end();
  request.end();
  await tracing.close();
  const [store, first] = spans;
  expect(first).toMatchObject({ service: 'gateway', traceId: TRACE, name: 'request', isError: false });
  expect(first?.attributes).toEqual({ 'http.response.status_code': 200 });
  expect(first?.parentSpanId).toBeUndefined();
  expect(store).toMatchObject({ traceId: TRACE, name: 'store', parentSpanId: first?.spanId });
});

it.each([undefined, '', `00-${TRACE}-00f067aa0ba902b7-00`, `01-${TRACE}-00f067aa0ba902b7-01`, 'nonsense'])(
  'the header %j does not continue a trace',
  async (traceparent) => {
    const { tracing } = await open();
    expect(tracing.resume({ name: 'store', kind: 'consumer' }, traceparent)).toBeNull();
    await tracing.close();
  },
);

it('the share of recorded traces follows the setting', async () => {
  for (const [ratio, least, most] of [
    [0, 0, 0],
    [0.01, 50, 150],
    [1, 10_000, 10_000],
  ] as const) {
    const { tracing } = await open(ratio);
    const sampled = Array.from({ length: 10_000 }, tracing.sample).filter(Boolean).length;
    expect(sampled).toBeGreaterThanOrEqual(least);
    expect(sampled).toBeLessThanOrEqual(most);
    await tracing.close();
  }
});

it('a failed span contains the class of its error, but not the message, which can contain a secret', async () => {
  const { tracing, spans, bodies } = await open();
  tracing.start({ name: 'store', kind: 'internal' }).end(new TypeError('password hunter2'));
  await tracing.close();
  expect(spans[0]).toMatchObject({ isError: true, attributes: { 'error.type': 'TypeError' } });
  expect(bodies.join()).not.toContain('hunter2');
});

it('an open span is found by its trace id until it ends', async () => {
  const { tracing } = await open();
  const span = tracing.start({ name: 'mint', kind: 'consumer' });
  expect(tracing.find(span.traceId)).toBe(span);
  span.end();
  expect(tracing.find(span.traceId)).toBeNull();
  await tracing.close();
});

it('an unavailable collector is logged once, and does not delay a shutdown', async () => {
  const lines: string[] = [];
  const log = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => lines.push(line) });
  const tracing = openOtlpTracing({ service: 'test', endpoint: 'http://127.0.0.1:1', ratio: 1, logger: log });
  tracing.start({ name: 'request', kind: 'server' }).end();
  await tracing.close();
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['traces were not exported']);
}, 20_000);
