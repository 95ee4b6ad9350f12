import type { ServerResponse } from 'node:http';
import { createReadActivities, toActivityRow, toTokenRow } from '@playline/chain';
import type { TokenRecord } from '@playline/contracts';
import { toPartition } from '@playline/stream';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FencedFault } from './index-log.ts';
import { createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { openRpcServer, RPC_SECRET, type RpcServer } from './test/open-rpc-server.ts';
import { openRealIndexers, PARTITIONS } from './test/real-indexer.ts';

const DEPTH = 4;
const LOCATION = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };
let indexers: Awaited<ReturnType<typeof openRealIndexers>>;
const servers: RpcServer[] = [];

beforeAll(async () => {
  indexers = await openRealIndexers();
});
afterAll(async () => {
  await indexers.close();
  await Promise.all(servers.map((server) => server.close()));
});

async function openChain(name: string) {
  const chain = new MemoryChain(DEPTH, name);
  const server = await openRpcServer(chain);
  servers.push(server);
  let value = 0;
  const mine = (blocks: number, logs = 4) => {
    for (let block = 0; block < blocks; block++)
      chain.mine(Array.from({ length: logs }, () => transferDraft(1 + (value % 4), [value % 3, 1], value++)));
  };
  const settings = { name, id: 'eip155:31337', urls: [server.url], pollMs: 50, rangeBlocks: 40 };
  const read = createReadActivities({ chain: name, nativeSymbol: 'ETH', marketplaces: [], bridges: [] });
  return {
    chain,
    server,
    mine,
    settings,
    expected: () =>
      [...read(chain.readFinal())].flatMap(({ reading }) => reading.records.map(({ id }) => id.toString('hex'))),
    published: async () =>
      (await indexers.activities()).filter((each) => each.chain === name).map(({ id }) => id.toString('hex')),
  };
}
const tokenOf = (chain: string, number: number): TokenRecord => ({
  chain,
  contractAddress: Buffer.from(number.toString(16).padStart(40, '0'), 'hex'),
  symbol: 'GLD',
  name: 'Gold',
  rootContractAddress: null,
  decimals: null,
  imageUrl: null,
  verificationStatus: 'unverified',
  isCanonical: false,
  rootChainId: null,
  bridgeUsed: null,
  traceId: '0'.repeat(32),
});
const partitionOf = (key: string) => toPartition(Buffer.from(key), PARTITIONS);
type OpenedChain = Awaited<ReturnType<typeof openChain>>;

const untilComplete = ({ expected, published }: OpenedChain) =>
  until('all final activities are published', async () => (await published()).length >= expected().length);

/** One test waits for half a minute of silence, so the other group runs concurrently. */
const [parallel, sequential] = [{ concurrent: true }, { concurrent: false }];

describe('an indexer on real brokers', parallel, () => {
  it(
    'indexers publish each activity once even if processes are killed or duplicated and the node fails',
    sequential,
    async () => {
      const testChain = await openChain('killed-chain');
      testChain.mine(200, 20);
      let requests = 0;
      testChain.server.corrupt = (response) => {
        const phase = requests++ % 7;
        if (phase === 3) response.writeHead(429).end();
        if (phase === 5) response.end('{"jsonrpc":"2.0","id":1,"res');
        return phase === 3 || phase === 5;
      };
      for (let run = 0; run < 3; run++) {
        const before = (await testChain.published()).length;
        const child = await indexers.start(testChain.settings);
        await until('more activities are published', async () => (await testChain.published()).length > before);
        // The second process keeps running alongside the third.
        if (run !== 1) await child.stop('SIGKILL');
        testChain.mine(20, 20);
        testChain.chain.reorg(3, [[transferDraft(2, [0, 1], 9_000_000 + run)]]);
      }
      testChain.server.corrupt = () => false;
      await indexers.start(testChain.settings);
      testChain.mine(DEPTH);
      await untilComplete(testChain);
      expect(await testChain.published()).toEqual(testChain.expected());
    },
  );

  it(
    'indexers write activities and tokens that the activity writer accepts, and describe each token once',
    sequential,
    async () => {
      const testChain = await openChain('row-chain');
      testChain.mine(30);
      const child = await indexers.start(testChain.settings);
      await untilComplete(testChain);
      for (const record of await indexers.activities()) toActivityRow(record, LOCATION);
      const tokens = (await indexers.tokens()).filter(({ chain }) => chain === testChain.settings.name);
      expect(tokens.map((record) => toTokenRow(record, LOCATION))).toMatchObject([
        { symbol: 'GLD', name: 'GLD', decimals: null, verificationStatus: 'unverified' },
        { symbol: 'GLD' },
      ]);
      await child.stop('SIGTERM');
      testChain.mine(10);
      await indexers.start(testChain.settings);
      await untilComplete(testChain);
      expect((await indexers.tokens()).filter(({ chain }) => chain === testChain.settings.name)).toHaveLength(2);
    },
  );

  it('the indexer reports its lag and its node faults without the node URL', sequential, async () => {
    const testChain = await openChain('reported-chain');
    testChain.mine(20);
    const child = await indexers.start(testChain.settings);
    await untilComplete(testChain);
    const metrics = async () => (await fetch(`${child.admin}/metrics`)).text();
    await until('all blocks are indexed', async () => /behind_blocks\{.*\} 0/.test(await metrics()));
    expect(await metrics()).toMatch(/playline_chain_indexer_block_number\{.*of="horizon".*\} 16/);
    testChain.server.corrupt = (response) => {
      response.writeHead(503).end(`https://node.example/${RPC_SECRET}`);
      return true;
    };
    await until('the fault is counted', async () => /faults_total\{.*kind="unreachable"/.test(await metrics()));
    expect(await metrics()).not.toContain(RPC_SECRET);
    expect(await (await fetch(`${child.admin}/readyz`)).text()).not.toContain(RPC_SECRET);
  });
});

describe('an indexer whose node is silent', parallel, () => {
  it('the indexer is not ready after 30 s without a response from its node, reports the reason, and recovers', async () => {
    const testChain = await openChain('silent-chain');
    testChain.mine(20);
    const child = await indexers.start(testChain.settings);
    await untilComplete(testChain);
    const silentS = async () => {
      const text = await (await fetch(`${child.admin}/metrics`)).text();
      return Number(/playline_chain_indexer_silent_seconds\{.*chain="silent-chain".*\} (\S+)/.exec(text)?.[1]);
    };
    const pending: ServerResponse[] = [];
    testChain.server.corrupt = (response) => {
      pending.push(response);
      return true;
    };
    const beganAtMs = performance.now();
    await until('the silence is reported', async () => (await silentS()) > 1);
    expect((await fetch(`${child.admin}/readyz`)).status).toBe(200);
    const status = await until('the indexer is not ready', async () => {
      const found = await fetch(`${child.admin}/readyz`);
      return found.status === 503 ? found.json() : null;
    });
    expect(performance.now() - beganAtMs).toBeGreaterThan(29_000);
    expect(status).toMatchObject({ notReady: ['silent-chain'], reasons: { 'silent-chain': expect.any(String) } });
    testChain.server.corrupt = () => false;
    for (const response of pending) response.destroy();
    await until('the indexer is ready again', async () => (await fetch(`${child.admin}/readyz`)).ok);
    expect(await silentS()).toBeLessThan(1);
  }, 120_000);
});

const EMPTY_BATCH = { activities: [], tokens: [], notices: [] };
const progressOf = (chain: string, block: number) => ({
  chain,
  block,
  hash: Buffer.alloc(32, block),
  nextLog: null,
  genesisHash: Buffer.alloc(32, 9),
  changedAt: block,
});

it('a fenced publisher cannot publish anything, not even records that it has already sent', async () => {
  const [commitGate, recordsSent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = indexers.openLogs({
    beforeCommit: async () => {
      recordsSent.resolve();
      await commitGate.promise;
    },
  });
  const second = indexers.openLogs();
  const fenced = await first.open('fenced-chain');
  const lost = fenced.publish({ ...EMPTY_BATCH, progress: progressOf('fenced-chain', 1) });
  lost.catch(() => {});
  await recordsSent.promise;
  const successor = await second.open('fenced-chain');
  expect(successor.progress).toBeNull();
  commitGate.resolve();
  await expect(lost).rejects.toThrow(FencedFault);
  await expect(fenced.publish({ ...EMPTY_BATCH, progress: progressOf('fenced-chain', 2) })).rejects.toThrow();
  await successor.publish({ ...EMPTY_BATCH, progress: progressOf('fenced-chain', 3) });
  await until('the progress is readable', async () => (await second.readProgress('fenced-chain'))?.block === 3);
  await Promise.all([fenced.close(), successor.close()]);
  await Promise.all([first.close(), second.close()]);
});

it("opening a chain's log waits for other chains' open transactions", async () => {
  const commitGate = Promise.withResolvers<void>();
  let [begun, reads, isResolved] = [0, 0, false];
  const slowLogs = indexers.openLogs({
    beforeCommit: async () => {
      begun++;
      await commitGate.promise;
    },
  });
  const logs = indexers.openLogs();
  const names = Array.from({ length: 12 }, (_, index) => `neighbour-${index}`);
  expect(names.map(partitionOf), 'a neighbour shares the partition').toContain(partitionOf('read-chain'));
  const chainLog = await logs.open('read-chain');
  await chainLog.publish({ ...EMPTY_BATCH, progress: progressOf('read-chain', 1) });
  const open = names.map(async (name) => {
    const log = await slowLogs.open(name);
    await log.publish({ ...EMPTY_BATCH, progress: progressOf(name, 7) });
    await log.close();
  });
  await until('all transactions have begun', () => begun === names.length);
  await chainLog.publish({ ...EMPTY_BATCH, progress: progressOf('read-chain', 2) });
  const reopened = indexers.openLogs({ onBounds: () => reads++ });
  const requested = reopened.open('read-chain').finally(() => {
    isResolved = true;
  });
  // Brokers abort transactions after ten seconds, by which time the reader has polled often enough.
  await until('the reader polls repeatedly or resolves', () => reads > 4 || isResolved);
  expect(isResolved, 'resolved while transactions before the record are open').toBe(false);
  commitGate.resolve();
  expect((await requested).progress?.block).toBe(2);
  await Promise.all(open);
  await (await requested).close();
  await chainLog.close();
  await Promise.all([slowLogs.close(), logs.close(), reopened.close()]);
});

it("reading a chain's tokens waits for other chains' open transactions", async () => {
  const commitGate = Promise.withResolvers<void>();
  let [begun, reads, isResolved] = [0, 0, false];
  const slowLogs = indexers.openLogs({
    beforeCommit: async () => {
      begun++;
      await commitGate.promise;
    },
  });
  const [logs, otherLogs] = [indexers.openLogs(), indexers.openLogs({ onBounds: () => reads++ })];
  const chainLog = await logs.open('token-chain');
  const numbers = Array.from({ length: 200 }, (_, index) => index + 1);
  const keyOf = (chain: string, number: number) => `${chain} 0x${number.toString(16).padStart(40, '0')}`;
  const at = partitionOf(keyOf('token-chain', 1));
  // Finds a chain whose progress is in a different partition, and whose token precedes the first chain's token.
  const neighbour = numbers
    .map((number) => `token-neighbour-${number}`)
    .find((name) => partitionOf(name) !== partitionOf('token-chain'))!;
  const number = numbers.find((each) => partitionOf(keyOf(neighbour, each)) === at)!;
  const log = await slowLogs.open(neighbour);
  const tokensOf = (chain: string, each: number) => ({ ...EMPTY_BATCH, tokens: [tokenOf(chain, each)] });
  const open = log.publish({ ...tokensOf(neighbour, number), progress: progressOf(neighbour, 1) });
  await until('the transaction has begun', () => begun === 1);
  await chainLog.publish({ ...tokensOf('token-chain', 1), progress: progressOf('token-chain', 1) });
  const successor = await otherLogs.open('token-chain');
  reads = 0;
  const requested = successor.readTokens().finally(() => {
    isResolved = true;
  });
  await until('the reader polls repeatedly or resolves', () => reads > 4 || isResolved);
  expect(isResolved, 'resolved while a transaction before the record is open').toBe(false);
  commitGate.resolve();
  expect([...(await requested)]).toEqual([`0x${'1'.padStart(40, '0')}`]);
  expect([...(await successor.readTokens())], 'the token was already returned').toEqual([]);
  await open;
  await Promise.all([log.close(), chainLog.close(), successor.close()]);
  await Promise.all([slowLogs.close(), logs.close(), otherLogs.close()]);
});

it("a chain's log accepts a batch of several megabytes", async () => {
  const logs = indexers.openLogs();
  const chain = new MemoryChain(DEPTH, 'large');
  chain.mine(Array.from({ length: 12_000 }, (_, value) => transferDraft(1, [0, 1], value)));
  for (let block = 0; block < DEPTH; block++) chain.mine();
  const node = createStateNode('large', DEPTH, () => chain.state);
  const testLane = createTestLane([node], logs, { recordsMax: 5_000, name: 'large-chain' });
  await stepToEnd(testLane);
  await testLane.lane.close();
  const published = (await indexers.activities()).filter((each) => each.chain === 'large-chain');
  expect(new Set(published.map(({ id }) => id.toString('hex'))).size).toBe(12_000);
  expect(published).toHaveLength(12_000);
  const progress = (await indexers.progress()).filter((each) => each.chain === 'large-chain');
  expect(progress.map(({ block, nextLog }) => [block, nextLog])).toEqual([
    [1, 5_000],
    [1, 10_000],
    [1, null],
  ]);
  await logs.close();
});
