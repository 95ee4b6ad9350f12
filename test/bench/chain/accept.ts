import { randomBytes } from 'node:crypto';
import { frameRecord, type MintRequestRecord, mintRequestCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { sendAll, toRequest } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { readSchemaId } from '../prepared-records.ts';
import { memoryPeakMibOf, pidListeningOn, watchCpu } from '../processes.ts';
import { mediansOf } from '../quantile.ts';
import { type Server, startPeer } from '../services.ts';
import { createAssetBody, type MintServers, mintHeadersOf, postOrder } from './mint-orders.ts';
import { mintChainOf } from './mint-scene.ts';

interface OrderSize {
  readonly assets: number;
  readonly requests: number;
  readonly warmUp: number;
  readonly connections: number;
}
const SIZES: readonly OrderSize[] = [
  { assets: 1, requests: 4_000, warmUp: 6_000, connections: 32 },
  { assets: 100, requests: 150, warmUp: 200, connections: 4 },
];
const REQUESTS_MIN = 20;
const WINDOWS = 3;

interface Target {
  readonly server: Server;
  readonly path: string;
}

/**
 * Assets that the chain API accepts per CPU-second. An accepted asset is validated, claimed, on the log with acks=all,
 * and can be found by its id.
 */
export const measureAccepted = (bench: Bench, servers: MintServers): Promise<Row[]> =>
  withOpened(async (keep) => {
    const floor = keep(await startFloor(bench, servers));
    const rows: Row[] = [];
    for (const size of SIZES) rows.push(await measureSize(bench, servers, { ...size, floor }));
    return rows;
  });

async function measureSize(
  bench: Bench,
  { api, scene }: MintServers,
  { floor, ...size }: OrderSize & { floor: Server },
): Promise<Row> {
  const targets = [
    { server: api, path: scene.path },
    { server: floor, path: `/?records=${size.assets}` },
  ];
  const post = (target: Target, requests: number) =>
    postOrders(bench, target, { ...size, requests: scaled(bench, requests, REQUESTS_MIN) });
  for (const target of targets) await post(target, size.warmUp);
  const windows: Awaited<ReturnType<typeof post>>[][] = [[], []];
  for (let window = 0; window < WINDOWS; window++)
    for (const [index, target] of targets.entries()) windows[index]!.push(await post(target, size.requests));
  const [own, peer] = windows.map(mediansOf) as [Awaited<ReturnType<typeof post>>, Awaited<ReturnType<typeof post>>];
  return toRow({
    case: `mint requests of ${size.assets} accepted`,
    unit: 'assets per CPU-second',
    value: own.perCpuSecond,
    peer: 'floor: reads, publishes the same bytes, answers',
    peerValue: peer.perCpuSecond,
    notes: `${Math.round(own.perSecond)} assets/s by the clock, floor ${Math.round(peer.perSecond)}; Redis ${own.redisCpuSeconds.toFixed(2)} CPU-s per thousand; peak ${memoryPeakMibOf(api.pid)} MiB`,
  });
}

async function postOrders(bench: Bench, { server, path }: Target, { requests, assets, connections }: OrderSize) {
  const prepared = Array.from({ length: requests }, (_, order) => {
    const bodies = Array.from({ length: assets }, (_, index) => createAssetBody(order * assets + index));
    return toRequest(path, mintHeadersOf(bench), Buffer.from(JSON.stringify({ assets: bodies })));
  });
  const watches = [server.pid, pidListeningOn(Number(new URL(bench.stores.redis).port))].map(watchCpu);
  const startMs = performance.now();
  await sendAll(server.port, prepared, { connections, expected: 202 });
  const seconds = (performance.now() - startMs) / 1_000;
  const [own = 0, redis = 0] = watches.map((spent) => spent());
  const count = requests * assets;
  return { perCpuSecond: count / own, perSecond: count / seconds, redisCpuSeconds: (redis * 1_000) / count };
}

/** The floor publishes to a topic with as many partitions, which no service reads. */
async function startFloor(bench: Bench, servers: MintServers): Promise<Server> {
  const topic = `${bench.topicPrefix}${TOPICS.mintRequests.name}`;
  const record = createRecord(bench, servers.scene.contract);
  const value = frameRecord(await readSchemaId(bench, topic, mintRequestCodec.schema), mintRequestCodec.encode(record));
  const answer = await postOrder(bench, servers, [createAssetBody(0)]);
  return startPeer(bench, 'chain/floor-accept', {
    environment: {
      BENCH_TOPIC: `${topic}.dead`,
      RECORD: value.toString('base64'),
      RECORD_KEY: toSignerKey(record),
      ANSWER: answer,
    },
  });
}

function createRecord(bench: Bench, contract: string): MintRequestRecord {
  const { reference_id: referenceId, owner_address: owner, metadata } = createAssetBody(1);
  const bytesOf = (hex: unknown) => Buffer.from(String(hex).slice(2), 'hex');
  return {
    chain: mintChainOf(bench),
    contractAddress: bytesOf(contract),
    referenceId: String(referenceId),
    attemptId: randomBytes(16),
    signer: randomBytes(20),
    projectId: 'test-bench',
    environmentId: bench.environmentId,
    ownerAddress: bytesOf(owner),
    tokenId: null,
    amount: null,
    metadata: JSON.stringify(metadata),
    requestedAt: Date.now(),
    traceId: randomBytes(16).toString('hex'),
  };
}
