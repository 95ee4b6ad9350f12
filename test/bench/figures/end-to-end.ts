import { TOPICS } from '@playline/contracts';
import { createEngine, waitForMerges, waitForRows, watchEngineCpu } from '../clickhouse.ts';
import { atMost, type Bench, type Figure, toRow } from '../figure.ts';
import { readEnd } from '../kafka-client.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { postMessages } from '../load.ts';
import { withOpened } from '../opened.ts';
import { type Measured, watchCpu } from '../processes.ts';
import { peerTopicOf, type Server, startGateway, startPeer, startWriter } from '../services.ts';

const MESSAGES = 120_000;
/** Enough to compile the servers' code, which reduces the cost per message from 29 to 10 µs. */
const WARM_UP_MESSAGES = 240_000;
const BATCH_SIZE = 20;

export const endToEnd: Figure = {
  name: 'end-to-end',
  async measure(bench) {
    const own = await withOpened(async (keep) => {
      const writer = keep(await startWriter(bench));
      const server = keep(await startGateway(bench));
      return measurePath(bench, {
        server,
        topic: `${bench.topicPrefix}${TOPICS.messages.name}`,
        writer,
        table: 'events',
      });
    });
    const peer = await withOpened(async (keep) => {
      const topic = peerTopicOf(bench);
      const { table } = keep(await openKafkaEngine(bench, topic));
      return measurePath(bench, { server: keep(await startPeer(bench, 'reference/gateway')), topic, table });
    });
    return [
      toRow({
        case: `post to queryable row, batches of ${BATCH_SIZE}`,
        unit: 'CPU-seconds per million messages',
        value: own.sum,
        peer: "reference + ClickHouse's Kafka engine",
        peerValue: peer.sum,
        bars: [atMost('ratio', 0.45, 0.3)],
        notes: `${own.notes}; peer: ${peer.notes}`,
      }),
    ];
  },
};

interface Path {
  server: Server;
  topic: string;
  writer?: Measured;
  table: string;
}

async function measurePath(bench: Bench, path: Path): Promise<{ sum: number; notes: string }> {
  await postAndStore(bench, path, WARM_UP_MESSAGES);
  const spent = [
    watchCpu(path.server.pid),
    path.writer === undefined ? () => 0 : watchCpu(path.writer.pid),
    await watchEngineCpu(createEngine(bench), path.table),
  ];
  const { seconds } = await postAndStore(bench, path, MESSAGES);
  const [server = 0, writer = 0, engine = 0] = spent.map((cpuSeconds) => (cpuSeconds() / MESSAGES) * 1e6);
  const parts = `gateway ${server.toFixed(1)}, writer ${writer.toFixed(1)}, engine ${engine.toFixed(1)}`;
  return { sum: server + writer + engine, notes: `${parts}, posted at ${Math.round(MESSAGES / seconds)}/s` };
}

async function postAndStore(bench: Bench, { server, topic, writer: measured, table }: Path, messages: number) {
  const engine = createEngine(bench);
  const posted = await postMessages(server, bench, { messages, batchSize: BATCH_SIZE });
  await waitForRows(engine, { table, rows: await readEnd(bench, topic), measured });
  await waitForMerges(engine, bench.database);
  return posted;
}
