import { createHash, randomUUID } from 'node:crypto';
import { Producer } from '@platformatic/kafka';
import { activityCodec, frameRecord, TOPICS } from '@playline/contracts';
import { createEngine } from '../clickhouse.ts';
import { BUSY, FEED_CHAINS, type Feed, fillFeed, partitionOf, resumeMerges } from '../feed/fill.ts';
import {
  casesOf,
  measureBareCpu,
  measurePageCpu,
  measurePlainPages,
  measureProxyCpu,
  type PageCost,
  type PageCpu,
  type PlainPages,
  type ReadCase,
  type ReadPage,
  readCosts,
  readPages,
} from '../feed/pages.ts';
import { atLeast, atMost, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { readSchemaId } from '../prepared-records.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import { type Server, startChainApi, startService } from '../services.ts';

const STREAM_PER_SECOND = 200;
const SEND_INTERVAL_MS = 100;

const bytesOf = (text: string, length: number) => createHash('sha256').update(text).digest().subarray(0, length);

/** Publishes activities for the busy chain at a constant rate. `close` returns their number. */
async function openStream(bench: Bench): Promise<{ close(): Promise<number> }> {
  const topic = `${bench.topicPrefix}${TOPICS.activities.name}`;
  const schemaId = await readSchemaId(bench, topic, activityCodec.schema);
  const clientOptions = { clientId: 'bench', bootstrapBrokers: bench.stores.kafka, acks: -1, idempotent: true };
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>(clientOptions);
  const common = { topic, partition: partitionOf(BUSY), key: Buffer.from(BUSY) };
  const startMs = performance.now();
  let sent = 0;
  const sendDue = async () => {
    const due = Math.round(((performance.now() - startMs) / 1_000) * STREAM_PER_SECOND) - sent;
    const messages = Array.from({ length: due }, (_, index) => ({
      ...common,
      value: frameRecord(schemaId, activityCodec.encode(createRecord(sent + index))),
    }));
    if (due > 0) await producer.send({ messages });
    sent += due;
  };
  const sending = repeatEvery(SEND_INTERVAL_MS, sendDue);
  return {
    async close() {
      await sending.close().finally(() => producer.close());
      return sent;
    },
  };
}

function createRecord(number: number): Parameters<typeof activityCodec.encode>[0] {
  const contractAddress = bytesOf(`streamed contract ${number % 100}`, 20);
  const hexOf = (bytes: Buffer) => `0x${bytes.toString('hex')}`;
  return {
    chain: BUSY,
    id: Buffer.from(randomUUID().replaceAll('-', ''), 'hex'),
    type: 'transfer',
    contractAddress,
    indexedAt: Date.now() * 1_000,
    blockchainMetadata: {
      transactionHash: bytesOf(`transaction ${number}`, 32),
      blockNumber: String(20_000_000 + number),
      transactionIndex: '1',
      logIndex: '2',
    },
    details: JSON.stringify({
      from: hexOf(bytesOf(`from ${number}`, 20)),
      to: hexOf(bytesOf(`to ${number}`, 20)),
      amount: '1',
      asset: {
        contract_type: 'ERC721',
        contract_address: hexOf(contractAddress),
        token_id: String(number),
        amount: '1',
      },
    }),
    traceId: bytesOf(`trace ${number}`, 16).toString('hex'),
  };
}

export const feed: Figure = {
  name: 'feed',
  optional: true,
  measure: (bench) =>
    withOpened(async (keep) => {
      const engine = createEngine(bench);
      const filled = await fillFeed(bench);
      console.error(`filled the feed with ${filled.rows} versions`);
      const server = keep(await startChainApi(bench, FEED_CHAINS));
      const cases = casesOf(filled);
      for (const each of cases) await readPages(server, filled, each);
      const idle = new Map<string, IdlePages>();
      for (const each of cases) {
        const pages = await readPages(server, filled, each);
        const costs = await readCosts(engine, pages);
        idle.set(each.name, { pages, costs, plain: await measurePlainPages(engine, filled, each) });
      }
      const cpu = await measurePageCpu(server, filled, { enginePort: engine.port });
      const bare = await measureBareCpu(bench, server, filled);
      const proxy = await measureProxyCpu(bench, engine, filled);
      const busy = await measureBusy(bench, { server, filled });
      return [
        ...cases.flatMap(({ name }) => toRows(name, idle.get(name)!, busy.get(name)!)),
        ...toCpuRows({ cpu, bare, proxy }),
      ];
    }),
};

interface IdlePages {
  readonly pages: readonly ReadPage[];
  readonly costs: readonly PageCost[];
  readonly plain: PlainPages;
}

const measureBusy = (bench: Bench, { server, filled }: { server: Server; filled: Feed }) =>
  withOpened(async (keep) => {
    await resumeMerges(bench);
    keep(await startService(bench, 'activity-writer'));
    const stream = await openStream(bench);
    const busy = new Map<ReadCase['name'], readonly ReadPage[]>();
    try {
      for (const each of casesOf(filled)) busy.set(each.name, await readPages(server, filled, each));
    } finally {
      console.error(`${await stream.close()} activities were published during the reads`);
    }
    return busy;
  });

function toRows(name: string, { pages, costs, plain }: IdlePages, busy: readonly ReadPage[]): Row[] {
  const msOf = (list: readonly ReadPage[], q: number) =>
    quantileOf(
      list.map(({ ms }) => ms),
      q,
    );
  const costOf = (column: keyof PageCost, q: number) =>
    quantileOf(
      costs.map((cost) => cost[column]),
      q,
    );
  const names = { case: name, peer: 'the same page, read with a tuple comparison' };
  const full = pages.filter(({ rows }) => rows > 0).length;
  return [
    toRow({
      ...names,
      unit: 'p99 ms per page',
      value: msOf(pages, 0.99),
      peerValue: plain.tuple.ms,
      bars: [atMost('value', 25, 10)],
      notes: `p50 ${msOf(pages, 0.5).toFixed(1)}, ${pages.length} pages, ${full} with rows; with OFFSET ${Math.round(plain.offset.ms)} ms; engine CPU p50 ${costOf('cpuMs', 0.5).toFixed(1)} ms`,
    }),
    toRow({
      ...names,
      unit: 'rows read per page, maximum',
      value: costOf('readRows', 1),
      peerValue: plain.tuple.readRows,
      bars: [atMost('value', 50_000, 20_000)],
      notes: `p50 ${costOf('readRows', 0.5)}; with OFFSET ${plain.offset.readRows}; queries p50 ${costOf('queries', 0.5)}, maximum ${costOf('queries', 1)}`,
    }),
    toRow({
      case: `${name}, with ${STREAM_PER_SECOND} new activities per second`,
      unit: 'p99 ms per page',
      value: msOf(busy, 0.99),
      peer: 'the same pages without new activities',
      peerValue: msOf(pages, 0.99),
      notes: `p50 ${msOf(busy, 0.5).toFixed(1)} and ${msOf(pages, 0.5).toFixed(1)}; ${busy.length} pages`,
    }),
  ];
}

function toCpuRows({ cpu, bare, proxy }: Readonly<Record<'cpu' | 'bare' | 'proxy', PageCpu>>): Row[] {
  const describe = ({ engineMs, pagesPerSecond }: PageCpu) =>
    `engine ${engineMs.toFixed(1)} CPU-ms per page; ${Math.round(pagesPerSecond)} pages per wall-clock second`;
  const value = { unit: 'pages per CPU-second', value: cpu.pagesPerCpuSecond };
  return [
    toRow({
      ...value,
      case: 'unfiltered pages of 100',
      bars: [atLeast('value', 3_000, 6_000)],
      notes: describe(cpu),
      peer: 'floor: a bare server that responds with the same bytes',
      peerValue: bare.pagesPerCpuSecond,
    }),
    toRow({
      ...value,
      case: 'unfiltered pages of 100, compared with a proxy',
      notes: `proxy: ${describe(proxy)}`,
      peer: 'floor: a bare proxy to the engine',
      peerValue: proxy.pagesPerCpuSecond,
    }),
  ];
}
