import { randomBytes } from 'node:crypto';
import { frameRecord, type MintRequestRecord, mintRequestCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { sendAll, toRequest } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { readSchemaId } from '../prepared-records.ts';
import { cpuSecondsOf, memoryPeakMibOf, pidListeningOn } from '../processes.ts';
import { medianOf } from '../quantile.ts';
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

interface AcceptWindow {
  readonly perCpuSecond: number;
  readonly perSecond: number;
  readonly redisCpuSeconds: number;
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
  const windows: AcceptWindow[][] = [[], []];
  const post = (target: Target, requests: number) =>
    postOrders(bench, target, { ...size, requests: scaled(bench, requests, REQUESTS_MIN) });
  for (const target of targets) await post(target, size.warmUp);
  for (let window = 0; window < WINDOWS; window++)
    for (const [index, target] of targets.entries()) windows[index]!.push(await post(target, size.requests));
  const median = (index: 0 | 1, name: keyof AcceptWindow) => medianOf(windows[index]!.map((each) => each[name]));
  return toRow({
    case: `mint requests of ${size.assets} accepted`,
    unit: 'assets per CPU-second',
    value: median(0, 'perCpuSecond'),
    peer: 'floor: reads, publishes the same bytes, answers',
    peerValue: median(1, 'perCpuSecond'),
    notes: `${Math.round(median(0, 'perSecond'))} assets/s by the clock, floor ${Math.round(median(1, 'perSecond'))}; Redis ${median(0, 'redisCpuSeconds').toFixed(2)} CPU-s per thousand; peak ${memoryPeakMibOf(api.pid)} MiB`,
  });
}

async function postOrders(
  bench: Bench,
  { server, path }: Target,
  { requests, assets, connections }: OrderSize,
): Promise<AcceptWindow> {
  const prepared = Array.from({ length: requests }, (_, order) => {
    const bodies = Array.from({ length: assets }, (_, index) => createAssetBody(order * assets + index));
    return toRequest(path, mintHeadersOf(bench), Buffer.from(JSON.stringify({ assets: bodies })));
  });
  const redisPid = pidListeningOn(Number(new URL(bench.stores.redis).port));
  const spent = () => [cpuSecondsOf(server.pid), redisPid === null ? Number.NaN : cpuSecondsOf(redisPid)] as const;
  const [before, startMs] = [spent(), performance.now()];
  await sendAll(server.port, prepared, { connections, expected: 202 });
  const [after, seconds] = [spent(), (performance.now() - startMs) / 1_000];
  const count = requests * assets;
  return {
    perCpuSecond: count / (after[0] - before[0]),
    perSecond: count / seconds,
    redisCpuSeconds: ((after[1] - before[1]) * 1_000) / count,
  };
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
