import { randomBytes } from 'node:crypto';
import { frameRecord, type MintRequestRecord, mintRequestCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { type Bench, type Row, toRow } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openLoadClient } from '../load-client.ts';
import { readSchemaId } from '../prepared-records.ts';
import { cpuSecondsOf, memoryPeakMibOf, openProcess, pidListeningOn, waitFor } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { createAssetBody, mintHeadersOf } from './mint-orders.ts';
import { type MintScene, mintChainOf } from './mint-scene.ts';

/** Assets per request, requests per window and for the warm-up, and connections. */
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
const ACCEPTED = 202;

interface Accepting {
  readonly api: Server;
  readonly scene: MintScene;
}

/** Where to post: a path, and the header fields that it needs. */
interface PostedTo {
  readonly server: Server;
  readonly path: string;
}

interface AcceptWindow {
  readonly perCpuSecond: number;
  readonly perSecond: number;
  /** CPU-seconds of Redis per thousand assets. */
  readonly redisCpuSeconds: number;
}

/**
 * Assets that the chain API accepts per CPU-second. An accepted asset is validated, claimed, on the log with acks=all,
 * and can be found by its id.
 */
export async function measureAccepted(bench: Bench, parts: Accepting): Promise<Row[]> {
  const floor = await openFloor(bench, parts);
  try {
    const rows: Row[] = [];
    for (const size of SIZES) rows.push(...(await measureSize(bench, parts, { size, floor })));
    return rows;
  } finally {
    await floor.close();
  }
}

async function measureSize(
  bench: Bench,
  { api, scene }: Accepting,
  { size, floor }: { size: OrderSize; floor: Server },
): Promise<Row[]> {
  const scaled = (count: number) => Math.max(REQUESTS_MIN, Math.round(count * bench.scale));
  const peers = [
    { server: api, path: scene.path },
    { server: floor, path: `/?records=${size.assets}` },
  ];
  const windows: AcceptWindow[][] = [[], []];
  for (const peer of peers) await post(bench, peer, { ...size, requests: scaled(size.warmUp) });
  for (let window = 0; window < WINDOWS; window++)
    for (const [at, peer] of peers.entries())
      windows[at]!.push(await post(bench, peer, { ...size, requests: scaled(size.requests) }));
  const [ours = [], theirs = []] = windows;
  const median = (list: readonly AcceptWindow[], name: keyof AcceptWindow) => medianOf(list.map((each) => each[name]));
  return [
    toRow({
      figure: 'chain',
      case: `mint requests of ${size.assets} accepted`,
      unit: 'assets per CPU-second',
      ours: median(ours, 'perCpuSecond'),
      theirs: median(theirs, 'perCpuSecond'),
      beside: 'floor: reads, publishes the same bytes, answers',
      also: `${Math.round(median(ours, 'perSecond'))} assets a second by the clock, floor ${Math.round(median(theirs, 'perSecond'))}; Redis ${median(ours, 'redisCpuSeconds').toFixed(2)} CPU-s a thousand; peak ${memoryPeakMibOf(api.pid)} MiB`,
    }),
  ];
}

/** Posts new requests until all are accepted. @throws Error when one is refused */
async function post(
  bench: Bench,
  { server, path }: PostedTo,
  { requests, assets, connections }: OrderSize,
): Promise<AcceptWindow> {
  const prepared = Array.from({ length: requests }, (_, at) => createRequest(bench, path, { first: at, assets }));
  const clients = await Promise.all(Array.from({ length: connections }, () => openLoadClient(server.port)));
  const redisPid = pidListeningOn(Number(new URL(bench.stores.redis).port));
  const spent = () => [cpuSecondsOf(server.pid), redisPid === null ? Number.NaN : cpuSecondsOf(redisPid)] as const;
  let next = 0;
  const send = async (client: (typeof clients)[number]) => {
    for (let request = prepared[next++]; request !== undefined; request = prepared[next++]) {
      const status = await client.send(request);
      if (status !== ACCEPTED) throw new Error(`a request of ${assets} assets was answered with ${status}`);
    }
  };
  const [before, startMs] = [spent(), performance.now()];
  try {
    await Promise.all(clients.map(send));
  } finally {
    for (const client of clients) client.close();
  }
  const [after, seconds] = [spent(), (performance.now() - startMs) / 1_000];
  const count = requests * assets;
  return {
    perCpuSecond: count / (after[0] - before[0]),
    perSecond: count / seconds,
    redisCpuSeconds: ((after[1] - before[1]) * 1_000) / count,
  };
}

function createRequest(bench: Bench, path: string, { first, assets }: { first: number; assets: number }): Buffer {
  const bodies = Array.from({ length: assets }, (_, at) => createAssetBody(first * assets + at));
  const body = Buffer.from(JSON.stringify({ assets: bodies }));
  const fields = { host: '127.0.0.1', ...mintHeadersOf(bench), 'content-length': body.length };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), body]);
}

/** Starts the floor. It publishes to a topic with as many partitions, which no service reads. */
async function openFloor(bench: Bench, { api, scene }: Accepting): Promise<Server> {
  const topic = `${bench.topicPrefix}${TOPICS.mintRequests.name}`;
  const record = createRecord(bench, scene);
  const value = frameRecord(await readSchemaId(bench, topic, mintRequestCodec.schema), mintRequestCodec.encode(record));
  const port = await findFreePort();
  const floor = openProcess('test/bench/chain/floor-accept.ts', {
    environment: {
      ...bench.environment,
      HTTP_PORT: String(port),
      BENCH_TOPIC: `${topic}.dead`,
      RECORD: value.toString('base64'),
      RECORD_KEY: toSignerKey(record),
      ANSWER: await readAnswer(bench, { api, scene }),
    },
  });
  const answers = async () => (await fetch(`http://127.0.0.1:${port}`)).ok;
  await waitFor('the floor answers', answers, { measured: floor, maxMs: 30_000 });
  return { ...floor, port };
}

/** A record as the chain API publishes it. */
function createRecord(bench: Bench, { contract }: MintScene): MintRequestRecord {
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

async function readAnswer(bench: Bench, { api, scene }: Accepting): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${api.port}${scene.path}`, {
    method: 'POST',
    headers: mintHeadersOf(bench),
    body: JSON.stringify({ assets: [createAssetBody(0)] }),
  });
  if (answer.status !== ACCEPTED) throw new Error(`a request was answered with ${answer.status}`);
  return answer.text();
}
