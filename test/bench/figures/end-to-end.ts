import { TOPICS } from '@playline/contracts';
import { createEngine, waitForMerges, waitForRows } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { openGateway, openPeer, peerEnvironment, type Server } from '../gateway-servers.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { postMessages } from '../post.ts';
import { type Measured, watchCpu } from '../processes.ts';
import { readEnd } from '../topic-end.ts';
import { openWriter } from '../writer-process.ts';

const MESSAGES = 120_000;
/** Warm-up. After it, the servers' code is compiled: a message costs 10 µs instead of 29. */
const WARM_UP_MESSAGES = 240_000;
const BATCH_SIZE = 20;
const MILLION = 1_000_000;

/** CPU-seconds from a posted message to a row that can be queried. All our processes and ClickHouse count. */
export const endToEnd: Figure = {
  name: 'end-to-end',
  async measure(bench) {
    const ours = await measureOurs(bench);
    return [toComparison(ours, await measurePeer(bench))];
  },
};

/** One path from post to row: the server, its topic, the writer, and the table. */
interface Way {
  server: Server;
  topic: string;
  /** Absent when ClickHouse itself reads the topic. */
  writer?: Measured;
  table: string;
}

async function measureOurs(bench: Bench): Promise<Cost> {
  const opened: Measured[] = [];
  try {
    const writer = await openWriter(bench);
    opened.push(writer);
    const server = await openGateway(bench);
    opened.push(server);
    return await measureWay(bench, {
      server,
      topic: `${bench.topicPrefix}${TOPICS.messages.name}`,
      writer,
      table: 'events',
    });
  } finally {
    for (const process of opened) await process.close();
  }
}

async function measurePeer(bench: Bench): Promise<Cost> {
  const topic = peerEnvironment(bench).BENCH_TOPIC ?? '';
  const { table, close } = await openKafkaEngine(bench, topic);
  try {
    const server = await openPeer('reference/gateway', bench);
    try {
      return await measureWay(bench, { server, topic, table });
    } finally {
      await server.close();
    }
  } finally {
    await close();
  }
}

/** CPU-seconds per million messages. */
interface Cost {
  server: number;
  writer: number;
  engine: number;
  sum: number;
  messagesPerSecond: number;
}

async function measureWay(bench: Bench, way: Way): Promise<Cost> {
  await postAndStore(bench, way, WARM_UP_MESSAGES);
  const engine = createEngine(bench);
  const engineSide = await watchEngineCpu(engine, way.table);
  const spent = {
    server: watchCpu(way.server.pid),
    writer: way.writer === undefined ? () => 0 : watchCpu(way.writer.pid),
    engine: engineSide,
  };
  const { seconds } = await postAndStore(bench, way, MESSAGES);
  const [server, writer, ofEngine] = [spent.server(), spent.writer(), spent.engine()].map(
    (cpuSeconds) => (cpuSeconds / MESSAGES) * MILLION,
  ) as [number, number, number];
  return { server, writer, engine: ofEngine, sum: server + writer + ofEngine, messagesPerSecond: MESSAGES / seconds };
}

/** Waits until every message on the broker is a row and no merge runs. */
async function postAndStore(bench: Bench, { server, topic, writer, table }: Way, messages: number) {
  const engine = createEngine(bench);
  const posted = await postMessages(server, bench, { messages, batchSize: BATCH_SIZE });
  await waitForRows(engine, { table, rows: await readEnd(bench, topic), ...(writer && { measured: writer }) });
  await waitForMerges(engine, bench.database);
  return posted;
}

function toComparison(ours: Cost, peer: Cost): Row {
  const describe = ({ server, writer, engine, messagesPerSecond }: Cost) =>
    `gateway ${server.toFixed(1)}, writer ${writer.toFixed(1)}, engine ${engine.toFixed(1)}, posted at ${Math.round(messagesPerSecond)}/s`;
  return toRow({
    figure: 'end-to-end',
    case: `post to queryable row, batches of ${BATCH_SIZE}`,
    unit: 'CPU-seconds per million messages',
    ours: ours.sum,
    beside: "reference + ClickHouse's Kafka engine",
    theirs: peer.sum,
    bars: [{ of: 'ratio', bound: 'at most', must: 0.45, aim: 0.3 }],
    also: `${describe(ours)}; peer: ${describe(peer)}`,
  });
}
