import { createServer } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { expect, onTestFinished, test } from 'vitest';
import { patchKafkaTimer } from '../kafka/timer.ts';
import { sentenceOf } from './readiness-watch.ts';

test('a broker that accepts connections but never answers is reported with the time, without the name of a request', async () => {
  const server = createServer(() => {});
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  patchKafkaTimer();
  const retry = { retries: 0 };
  const client = new Kafka({ brokers: [`127.0.0.1:${port}`], requestTimeout: 1000, retry, logLevel: logLevel.NOTHING });
  const admin = client.admin();
  onTestFinished(() => admin.disconnect());
  const fault = await admin.connect().catch((error: unknown) => error);
  expect(sentenceOf(fault)).toBe('it does not answer within 1 s');
});

test('a message that an error and its cause share is reported once', () => {
  const cause = new Error('no leader');
  expect(sentenceOf(new Error('gave up: no leader', { cause }))).toBe('gave up: no leader');
  expect(sentenceOf(new Error('fetch failed', { cause: { code: 'ECONNREFUSED' } }))).toBe(
    'fetch failed (ECONNREFUSED)',
  );
});
