/**
 * A process that consumes a topic into a ClickHouse table, for tests that kill and suspend writers. Block limits and
 * step durations are random, because with fixed limits even a writer without intents would write every row once. Prints
 * `joined` when it has become a group member.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type ClickHouseAccount, sendStatement } from '@playline/stores';
import type { BlockBuilder, BlockName } from '../../ports.ts';
import { RetryableFault } from '../../ports.ts';
import { openBlockConsumer } from '../index.ts';
import { openProducer } from '../producer/open-producer.ts';

export interface WriterProcessSettings {
  brokers: string[];
  topic: string;
  groupId: string;
  table: string;
  clickhouse: Omit<ClickHouseAccount, 'database'>;
  sessionTimeoutMs: number;
}

const settings = JSON.parse(process.argv[2]!) as WriterProcessSettings;
const JITTER_MAX_MS = 60;
const jitter = () => delay(Math.random() * JITTER_MAX_MS);

function openBlock(): BlockBuilder {
  let lines = '';
  let rows = 0;
  return {
    get rows() {
      return rows;
    },
    get bytes() {
      return lines.length;
    },
    add({ partition, offset }) {
      lines += `${partition}\t${offset}\n`;
      rows++;
      return { kind: 'ok' };
    },
    async write({ topic, partition, start, end }: BlockName) {
      const token = `${topic}|${partition}|${start}|${end - 1}`;
      await jitter();
      const query = `INSERT INTO ${settings.table} FORMAT TSV`;
      const deduplication = { async_insert: '0', insert_deduplicate: '1', insert_deduplication_token: token };
      const request = { body: lines, settings: { query, ...deduplication }, deadlineMs: 60_000 };
      await sendStatement({ ...settings.clickhouse, database: 'default' }, request)
        .then((response) => response.text())
        .catch((fault: Error) => {
          throw new RetryableFault(fault.message);
        });
      await jitter();
    },
    release() {},
  };
}

const { brokers } = settings;
const deadLetters = await openProducer({ brokers, clientId: 'test-writer' });
const consumer = await openBlockConsumer({
  brokers,
  groupId: settings.groupId,
  topics: [settings.topic],
  sink: { transformVersion: 1, openBlock },
  limits: { rowsMax: 100 + Math.floor(Math.random() * 300), bytesMax: 1_000_000, ageMaxMs: 100 + Math.random() * 200 },
  deadLetters,
  sessionTimeoutMs: settings.sessionTimeoutMs,
});
const announce = setInterval(() => {
  if (!consumer.ready()) return;
  clearInterval(announce);
  process.stdout.write('joined\n');
}, 20);
process.once('SIGTERM', async () => {
  await consumer.close();
  process.exit(0);
});
