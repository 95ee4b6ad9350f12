import { createLogger, openTracing } from '@playline/runtime';
import { useTraceReceiver } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createMintTraces } from './mint-traces.ts';
import type { LaneChange, MintLog } from './ports.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

it('a recorded mint has one span until its last asset is settled', async () => {
  const { endpoint, spans } = await useTraceReceiver();
  const logger = createLogger({ service: 'test', level: 'silent' });
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: 1 };
  const tracing = (await openTracing(async (_, open) => open(), { service: 'minter', config, logger }))!;
  const traces = createMintTraces(tracing);
  const log = { openWriter: async () => ({ append: async () => {} }) } as unknown as MintLog;
  const writer = await traces.watchLog(log).openWriter({ chain: 'demo', signer: Buffer.alloc(20) });
  const settle = (...statuses: string[]) =>
    writer.append({
      states: statuses.map((status) => ({ status, traceId: TRACE })),
      transactions: [],
      forgotten: [],
    } as unknown as LaneChange);
  const request = { chain: 'demo', traceId: TRACE };
  for (const flags of ['01', '01', '00'])
    traces.follow(flags === '00' ? { ...request, traceId: 'f'.repeat(32) } : request, {
      headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-${flags}` },
    });
  await settle('pending', 'succeeded');
  expect(tracing.find(TRACE)).not.toBeNull();
  await settle('failed');
  expect(tracing.find(TRACE)).toBeNull();
  await tracing.close();
  expect(spans).toHaveLength(1);
  expect(spans[0]).toMatchObject({
    name: 'mint',
    parentSpanId: '00f067aa0ba902b7',
    attributes: { 'playline.chain': 'demo' },
  });
});
