import { createServer } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { expect, onTestFinished, test } from 'vitest';
import { patchKafkaTimer } from '../kafka/timer.ts';
import { toReason } from './readiness-watch.ts';

test('toReason reports how long it waited for an unresponsive broker, without naming a Kafka request', async () => {
  const server = createServer(() => {});
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  patchKafkaTimer();
  const retry = { retries: 0 };
  const client = new Kafka({ brokers: [`127.0.0.1:${port}`], requestTimeout: 1000, retry, logLevel: logLevel.NOTHING });
  const admin = client.admin();
  onTestFinished(() => admin.disconnect());
  const failure = await admin.connect().catch((error: unknown) => error);
  expect(toReason(failure)).toBe('it does not respond within 1 s');
});

test('toReason does not repeat a cause that the error message contains', () => {
  const cause = new Error('no leader');
  expect(toReason(new Error('gave up: no leader', { cause }))).toBe('gave up: no leader');
  expect(toReason(new Error('fetch failed', { cause: { code: 'ECONNREFUSED' } }))).toBe('fetch failed (ECONNREFUSED)');
});
