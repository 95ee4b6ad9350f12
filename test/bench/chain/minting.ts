import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Change,
  COLLECTIONS,
  createRecordStore,
  createSignableKey,
  linkCollection,
  type RecordKind,
  type RecordStore,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { parseSignerKeys } from '@playline/access-keys/signer';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import { frameRecord, type MintRequestRecord, mintRequestCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { CONTRACT_ABIS, openTestChain, type TestChain } from '@playline/testkit/chain';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { type FloorFigure, runFloor } from '../floors/run.ts';
import { sendAll, toRequest } from '../load-client.ts';
import { type Keep, withOpened } from '../opened.ts';
import { readSchemaId } from '../prepared-records.ts';
import { type Measured, memoryPeakMibOf, pidListeningOn, waitFor, watchCpu } from '../processes.ts';
import { medianOf, mediansOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import { type Server, startPeer, startService } from '../services.ts';

const BLOCK_MS = 1_000;
const POLL_MS = 500;

type MintScene = Awaited<ReturnType<typeof openMintScene>>;

export const mintChainOf = ({ environmentId }: Bench): string => environmentId;

export async function openMintScene(bench: Bench, keep: Keep) {
  const chain = keep(await openTestChain({ mining: 'manual', epochBlocks: 2 }));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signerKeys = JSON.stringify([privateKey.export({ format: 'jwk' })]);
  const contract = await createRecords(bench, chain, signerKeys);
  const name = mintChainOf(bench);
  const node = { name, id: `eip155:${chain.id}`, urls: [chain.rpc], pollMs: POLL_MS };
  keep(repeatEvery(BLOCK_MS, () => chain.mine()));
  const supply = { address: contract, abi: CONTRACT_ABIS['demo-erc721'], functionName: 'totalSupply' } as const;
  return {
    chain,
    contract,
    path: `/v1/chains/${name}/collections/${contract}/nfts/mint-requests`,
    countTokens: async () => Number(await chain.client.readContract(supply)),
    startMinter: (openNoncesMax: number) =>
      startService(bench, 'minter', {
        CHAIN_NODES: JSON.stringify([{ ...node, openNoncesMax }]),
        SIGNER_KEYS: signerKeys,
      }),
  };
}

/** Writes access records to Redis only; the record log is in memory. @returns the contract address */
async function createRecords(bench: Bench, chain: TestChain, signerKeys: string): Promise<`0x${string}`> {
  const owner = { projectId: 'test-bench', environmentId: bench.environmentId };
  const signerKey = parseSignerKeys(signerKeys)[0]!.publicKey;
  const { address } = await withRecords(bench, SIGNABLE_KEYS, (store) =>
    createSignableKey({ store, signerKey }, { ...owner, name: 'Bench' }),
  );
  const { erc721: contractAddress } = await chain.deployDemo(address as `0x${string}`);
  const collection = { ...owner, chain: mintChainOf(bench), contractAddress, name: 'Bench' };
  await withRecords(bench, COLLECTIONS, (store) => linkCollection({ store }, collection));
  return contractAddress;
}

const withRecords = <R extends Change, T>(
  { environment }: Bench,
  kind: RecordKind<R>,
  work: (store: RecordStore<R>) => Promise<T>,
): Promise<T> =>
  withOpened(async (keep) => {
    const view = keep(await openRedisRecords(kind, { url: environment.REDIS_URL ?? '' }));
    const pair = { view, log: createMemoryRecordLog<R>() };
    return work(createRecordStore(pair, { changedBy: 'bench', requestId: 'bench' }));
  });

interface MintServers {
  readonly api: Server;
  readonly scene: MintScene;
}

function createAssetBody(number: number): Record<string, unknown> {
  return {
    reference_id: randomUUID(),
    owner_address: `0x${(number + 1).toString(16).padStart(40, '0')}`,
    metadata: {
      name: `Sword #${number}`,
      image: `https://assets.example.com/swords/${number}.png`,
      description: 'A sword forged in a volcano and found by the first adventurer who dared to enter.',
      attributes: [
        { trait_type: 'Material', value: 'Obsidian' },
        { trait_type: 'Damage', value: number % 100, display_type: 'number' },
        { trait_type: 'Season', value: 'Third' },
      ],
    },
  };
}

const mintHeadersOf = ({ secretKey }: Bench): Record<string, string> => ({
  'content-type': 'application/json',
  'x-service-api-key': secretKey,
});

/** @returns the response body @throws Error unless the request is accepted */
async function postMintRequest(bench: Bench, { api, scene }: MintServers, assets: readonly object[]): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${api.port}${scene.path}`, {
    method: 'POST',
    headers: mintHeadersOf(bench),
    body: JSON.stringify({ assets }),
  });
  const text = await response.text();
  if (response.status !== 202) throw new Error(`a mint request failed with status ${response.status}: ${text}`);
  return text;
}

/** Requests mints of new assets. @returns the reference id of the last asset, which is minted last */
async function requestMints(bench: Bench, servers: MintServers, assets: number): Promise<string> {
  const bodies = Array.from({ length: assets }, (_, index) => createAssetBody(index));
  await postMintRequest(bench, servers, bodies);
  return String(bodies.at(-1)!.reference_id);
}

// Retries a request for one asset: the chain API accepts no mint requests until the writer has processed the log.
async function requestFirstMint(bench: Bench, servers: MintServers): Promise<string> {
  let referenceId = '';
  const isAccepted = async () => {
    referenceId = await requestMints(bench, servers, 1);
    return true;
  };
  await waitFor('a mint request is accepted', isAccepted, { measured: servers.api, maxMs: 60_000 });
  return referenceId;
}

interface MintResponse {
  readonly result?: readonly { readonly status: string; readonly error: { readonly message: string } | null }[];
}

const MINTED_MAX_MS = 600_000;

async function waitUntilMinted(bench: Bench, { api, scene }: MintServers, referenceId: string, pollMs = 100) {
  const url = `http://127.0.0.1:${api.port}${scene.path}/${referenceId}`;
  const endMs = performance.now() + MINTED_MAX_MS;
  for (;;) {
    const response = await fetch(url, { headers: mintHeadersOf(bench) });
    const [request] = ((await response.json()) as MintResponse).result ?? [];
    if (request?.status === 'succeeded') return;
    if (request?.status === 'failed') throw new Error(`a mint failed: ${request.error?.message}`);
    if (performance.now() > endMs) throw new Error(`${referenceId} was not minted in time`);
    await delay(pollMs);
  }
}

interface Size {
  readonly assets: number;
  readonly requests: number;
  readonly warmUp: number;
  readonly connections: number;
}
const SIZES: readonly Size[] = [
  { assets: 1, requests: 4_000, warmUp: 6_000, connections: 32 },
  { assets: 100, requests: 150, warmUp: 200, connections: 4 },
];
const REQUESTS_MIN = 20;
const WINDOWS = 3;

interface Target {
  readonly server: Server;
  readonly path: string;
}

// Measures how many assets the chain API validates, claims and publishes with acks=all per CPU-second.
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
  { floor, ...size }: Size & { floor: Server },
): Promise<Row> {
  const targets = [
    { server: api, path: scene.path },
    { server: floor, path: `/?records=${size.assets}` },
  ];
  const post = (target: Target, requests: number) =>
    postMintRequests(bench, target, { ...size, requests: scaled(bench, requests, REQUESTS_MIN) });
  for (const target of targets) await post(target, size.warmUp);
  const windows: Awaited<ReturnType<typeof post>>[][] = [[], []];
  for (let window = 0; window < WINDOWS; window++)
    for (const [index, target] of targets.entries()) windows[index]!.push(await post(target, size.requests));
  const [own, peer] = windows.map(mediansOf) as [Awaited<ReturnType<typeof post>>, Awaited<ReturnType<typeof post>>];
  return toRow({
    case: `accepted mint requests with ${size.assets} assets`,
    unit: 'assets per CPU-second',
    value: own.perCpuSecond,
    peer: 'floor: reads, publishes the same bytes, responds',
    peerValue: peer.perCpuSecond,
    notes: `${Math.round(own.perSecond)} assets per wall-clock second, floor ${Math.round(peer.perSecond)}; Redis ${own.redisCpuSeconds.toFixed(2)} CPU-s per 1,000 assets; peak ${memoryPeakMibOf(api.pid)} MiB`,
  });
}

async function postMintRequests(bench: Bench, { server, path }: Target, { requests, assets, connections }: Size) {
  const prepared = Array.from({ length: requests }, (_, request) => {
    const bodies = Array.from({ length: assets }, (_, index) => createAssetBody(request * assets + index));
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

/** The floor publishes to a topic that no service reads, with the same number of partitions. */
async function startFloor(bench: Bench, servers: MintServers): Promise<Server> {
  const topic = `${bench.topicPrefix}${TOPICS.mintRequests.name}`;
  const record = createRecord(bench, servers.scene.contract);
  const value = frameRecord(await readSchemaId(bench, topic, mintRequestCodec.schema), mintRequestCodec.encode(record));
  const response = await postMintRequest(bench, servers, [createAssetBody(0)]);
  return startPeer(bench, 'chain/floor-accept', {
    environment: {
      BENCH_TOPIC: `${topic}.dead`,
      RECORD: value.toString('base64'),
      RECORD_KEY: toSignerKey(record),
      RESPONSE: response,
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

const ASSETS_PER_REQUEST = 100;
const REQUESTS = 50;
const SINGLES = 5;
/** Delay before each request, so that requests start at different times relative to blocks and polls. */
const SINGLE_SHIFT_MS = 230;
const SINGLE_POLL_MS = 25;
/** The minter's limit on open nonces: the default and the maximum. */
const [OPEN_DEFAULT, OPEN_MAX] = [8, 64];
const TOKENS_MAX_MS = 60_000;

interface MintParts extends MintServers {
  readonly writer: Measured;
}

/** Measures the rate of bulk mints and the duration of single mints, from POST to `succeeded`. The floor is viem. */
export async function measureMints(bench: Bench, parts: MintParts): Promise<Row[]> {
  const requests = scaled(bench, REQUESTS, 5);
  const first = await requestFirstMint(bench, parts);
  const rows: Row[] = [];
  for (const open of [OPEN_DEFAULT, OPEN_MAX])
    await withOpened(async (keep) => {
      const minter = keep(await parts.scene.startMinter(open));
      await waitUntilMinted(bench, parts, first);
      await mintInBulk(bench, parts, 1);
      rows.push(...(await measureBulk(bench, { ...parts, minter }, { requests, open })));
      if (open === OPEN_DEFAULT) rows.push(await measureSingles(bench, parts));
    });
  return rows;
}

async function mintInBulk(bench: Bench, parts: MintParts, requests: number): Promise<void> {
  const before = await parts.scene.countTokens();
  const sent = [];
  for (let request = 0; request < requests; request++) sent.push(await requestMints(bench, parts, ASSETS_PER_REQUEST));
  for (const referenceId of sent) await waitUntilMinted(bench, parts, referenceId);
  const isComplete = async () => (await parts.scene.countTokens()) === before + requests * ASSETS_PER_REQUEST;
  await waitFor('the contract has a token for each asset', isComplete, { maxMs: TOKENS_MAX_MS });
}

async function measureBulk(
  bench: Bench,
  parts: MintParts & { minter: Measured },
  { requests, open }: { requests: number; open: number },
): Promise<Row[]> {
  const { minter, api, writer } = parts;
  const watches = [minter, api, writer].map(({ pid }) => watchCpu(pid));
  const startMs = performance.now();
  await mintInBulk(bench, parts, requests);
  const seconds = (performance.now() - startMs) / 1_000;
  const [minterS = 0, apiS = 0, writerS = 0] = watches.map((spent) => spent());
  const peak = memoryPeakMibOf(minter.pid);
  const floor = await runMintFloor(bench, parts, { batches: requests, assets: ASSETS_PER_REQUEST, open });
  const mints = requests * ASSETS_PER_REQUEST;
  const per = (cpuSeconds: number) => ((cpuSeconds * 1_000) / mints).toFixed(2);
  const names = {
    case: `${mints} mints in requests of ${ASSETS_PER_REQUEST}, ${INTERVAL}, ${open} open nonces`,
    peer: 'floor: viem alone, the same batches',
  };
  return [
    toRow({
      ...names,
      unit: 'mints per second',
      value: mints / seconds,
      peerValue: mints / floor.seconds,
      notes: `${seconds.toFixed(1)} s, floor ${floor.seconds.toFixed(1)} s`,
    }),
    toRow({
      ...names,
      unit: 'mints per CPU-second',
      value: mints / minterS,
      peerValue: mints / floor.cpuSeconds,
      notes: `CPU-ms per mint: minter ${per(minterS)}, chain API ${per(apiS)}, activity writer ${per(writerS)}, viem ${per(floor.cpuSeconds)}; peak ${peak} MiB`,
    }),
  ];
}

const INTERVAL = `one block per ${BLOCK_MS / 1_000} s`;

async function measureSingles(bench: Bench, parts: MintParts): Promise<Row> {
  const count = scaled(bench, SINGLES, 2);
  const ms: number[] = [];
  for (let single = 0; single < count; single++) {
    await delay(SINGLE_SHIFT_MS);
    const startMs = performance.now();
    await waitUntilMinted(bench, parts, await requestMints(bench, parts, 1), SINGLE_POLL_MS);
    ms.push(performance.now() - startMs);
  }
  const { seconds } = await runMintFloor(bench, parts, { batches: count, assets: 1, open: 1 });
  return toRow({
    case: `one asset from POST to succeeded, ${INTERVAL}`,
    unit: 'ms, median',
    value: medianOf(ms),
    peer: 'floor: viem alone',
    peerValue: (seconds / count) * 1_000,
    notes: `${ms.map((each) => Math.round(each)).join(', ')}; floor: mean`,
  });
}

const runMintFloor = (
  { environment }: Bench,
  { scene: { chain } }: MintParts,
  { batches, assets, open }: Readonly<Record<'batches' | 'assets' | 'open', number>>,
): Promise<FloorFigure> =>
  runFloor('chain/floor-mints', {
    ...environment,
    NODE_URL: chain.rpc,
    CHAIN_ID: String(chain.id),
    POLL_MS: String(POLL_MS),
    BATCHES: String(batches),
    ASSETS: String(assets),
    OPEN: String(open),
  });
