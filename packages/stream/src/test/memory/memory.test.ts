import { createMetrics } from '@playline/runtime';
import { expect, it } from 'vitest';
import { RetryableFault } from '../../ports.ts';
import { consumerContract } from '../consumer-contract.ts';
import { producerContract, send } from '../producer-contract.ts';
import { createTokenSink, TokenStore } from '../token-store.ts';
import { createMemoryLog } from './index.ts';

function openHarness() {
  const log = createMemoryLog();
  let topics = 0;
  return {
    log,
    producer: log.openProducer(),
    createTopic: async (options: { partitions: number; recordBytesMax?: number }) => {
      const topic = `topic-${topics++}`;
      log.createTopic(topic, options);
      log.createTopic(`${topic}.dead`, { partitions: 1 });
      return topic;
    },
    read: async (topic: string) => log.records(topic),
    close: async () => {},
  };
}

producerContract('memory', async () => openHarness());

consumerContract('memory', async () => {
  const harness = openHarness();
  const { log } = harness;
  return {
    ...harness,
    committed: async (groupId, topic) => {
      const partitions = [...new Set(log.records(topic).map(({ partition }) => partition))];
      return new Map(partitions.map((partition) => [partition, log.committed(topic, partition, groupId)]));
    },
    openBlockConsumer: async (options) => log.openBlockConsumer(options),
    openRecordConsumer: async (options) => log.openRecordConsumer(options),
  };
});

it('the stream metrics count each record once, by outcome and reason', async () => {
  const { log, producer } = openHarness();
  const metrics = createMetrics('test');
  const texts = ['row', 'row', 'drop this', 'refuse this', 'poison'];
  const value = (text: string) => ({ topic: 'counted', key: null, value: Buffer.from(text) });
  await send(producer, texts.map(value));
  const store = new TokenStore();
  let lost = 2;
  store.onWrite = (_name, phase) => {
    if (phase === 'after' && lost-- > 0) throw new RetryableFault('the response was lost');
  };
  const limits = { rowsMax: 10, bytesMax: 1_000, ageMaxMs: 1 };
  const consumer = log.openBlockConsumer({ topics: ['counted'], sink: createTokenSink(store), limits, metrics });
  await consumer.idle();
  await consumer.close();
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('playline_stream_'));
  const counted = (outcome: string, reason: string, count: number) =>
    `playline_stream_records_total{topic="counted",outcome="${outcome}",reason="${reason}",service="test"} ${count}`;
  expect(lines).toContain(counted('ok', '', 2));
  expect(lines).toContain(counted('drop', 'unwanted', 1));
  expect(lines).toContain(counted('deadLetter', 'refused', 1));
  expect(lines).toContain(counted('deadLetter', 'TypeError', 1));
  expect(lines).toContain('playline_stream_retries_total{topic="counted",step="write",service="test"} 2');
  expect(lines).toContain('playline_stream_blocks_total{topic="counted",result="written",service="test"} 1');
});
