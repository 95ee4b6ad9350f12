import { createReadActivities, toActivityRow, toTokenRow } from '@playline/chain';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FencedFault } from './index-log.ts';
import { createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { openRpcServer, RPC_SECRET, type RpcServer } from './test/open-rpc-server.ts';
import { openRealIndexers } from './test/real-indexer.ts';

const DEPTH = 4;
const PLACE = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };
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
  const settings = { name, id: 'eip155:31337', rpc: [server.url], pollMs: 50, rangeBlocks: 40 };
  const read = createReadActivities({ chain: name, nativeSymbol: 'ETH', marketplaces: [], bridges: [] });
  return {
    ...{ chain, server, mine, settings },
    /** What a fresh index of all that is final is. */
    expected: () => chain.finalLogs().flatMap((log) => read(log, 0).records.map(({ id }) => id.toString('hex'))),
    published: async () =>
      (await indexers.activities()).filter((each) => each.chain === name).map(({ id }) => id.toString('hex')),
  };
}
type OpenedChain = Awaited<ReturnType<typeof openChain>>;

const untilWhole = ({ expected, published }: OpenedChain) =>
  until('all that is final is published', async () => (await published()).length >= expected().length);

describe('an indexer on real brokers', () => {
  it('publishes each activity of a chain once, through kills, second processes and faults of its node', async () => {
    const own = await openChain('killed-chain');
    own.mine(300, 20);
    let requests = 0;
    own.server.spoil = (response) => {
      const turn = requests++ % 7;
      if (turn === 3) response.writeHead(429).end();
      if (turn === 5) response.end('{"jsonrpc":"2.0","id":1,"res');
      return turn === 3 || turn === 5;
    };
    for (let life = 0; life < 4; life++) {
      const before = (await own.published()).length;
      const child = await indexers.start(own.settings);
      await until('something more is published', async () => (await own.published()).length > before);
      // The last but one goes on beside the next one.
      if (life !== 2) await child.stop('SIGKILL');
      own.mine(20, 20);
      own.chain.reorg(3, [[transferDraft(2, [0, 1], 9_000_000 + life)]]);
    }
    own.server.spoil = () => false;
    await indexers.start(own.settings);
    own.mine(DEPTH);
    await untilWhole(own);
    expect(await own.published()).toEqual(own.expected());
  });

  it('writes what the writer of the history takes: activities as rows, a token once with its name', async () => {
    const own = await openChain('row-chain');
    own.mine(30);
    const child = await indexers.start(own.settings);
    await untilWhole(own);
    for (const record of await indexers.activities()) toActivityRow(record, PLACE);
    const tokens = (await indexers.tokens()).filter(({ chain }) => chain === own.settings.name);
    expect(tokens.map((record) => toTokenRow(record, PLACE))).toMatchObject([
      { symbol: 'GLD', name: 'GLD', decimals: null, verificationStatus: 'unverified' },
      { symbol: 'GLD' },
    ]);
    await child.stop('SIGTERM');
    own.mine(10);
    await indexers.start(own.settings);
    await untilWhole(own);
    expect((await indexers.tokens()).filter(({ chain }) => chain === own.settings.name)).toHaveLength(2);
  });

  it('tells what is behind and why, and never an address of a node', async () => {
    const own = await openChain('told-chain');
    own.mine(20);
    const child = await indexers.start(own.settings);
    await untilWhole(own);
    const metrics = async () => (await fetch(`${child.admin}/metrics`)).text();
    await until('all is indexed', async () => /behind_blocks\{.*\} 0/.test(await metrics()));
    expect(await metrics()).toMatch(/chain_indexer_block\{.*of="horizon".*\} 16/);
    own.server.spoil = (response) => {
      response.writeHead(503).end(`https://node.example/${RPC_SECRET}`);
      return true;
    };
    await until('the fault is counted', async () => /faults_total\{.*kind="unreachable"/.test(await metrics()));
    expect(await metrics()).not.toContain(RPC_SECRET);
    expect(await (await fetch(`${child.admin}/readyz`)).text()).not.toContain(RPC_SECRET);
  });
});

describe('the log of a chain', () => {
  const nothing = { activities: [], tokens: [] };
  const progressOf = (chain: string, block: number) => ({
    ...{
      chain,
      block,
      hash: Buffer.alloc(32, block),
      nextLog: null,
      genesisHash: Buffer.alloc(32, 9),
      changedAt: block,
    },
  });

  it('is taken from whoever had it, who can publish nothing any more, also what was sent already', async () => {
    const [stuck, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = indexers.openLogs(async () => {
      sent.resolve();
      await stuck.promise;
    });
    const second = indexers.openLogs();
    const zombie = await first.open('fenced-chain');
    const lost = zombie.publish({ ...nothing, progress: progressOf('fenced-chain', 1) });
    lost.catch(() => {});
    await sent.promise;
    const heir = await second.open('fenced-chain');
    expect(heir.progress).toBeNull();
    stuck.resolve();
    await expect(lost).rejects.toThrow(FencedFault);
    await expect(zombie.publish({ ...nothing, progress: progressOf('fenced-chain', 2) })).rejects.toThrow();
    await heir.publish({ ...nothing, progress: progressOf('fenced-chain', 3) });
    expect((await second.readProgress('fenced-chain'))?.block).toBe(3);
    await Promise.all([zombie.close(), heir.close()]);
    await Promise.all([first.close(), second.close()]);
  });

  it('is read behind transactions of other chains that are still open: not something older instead', async () => {
    const [stuck, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = indexers.openLogs(async () => {
      sent.resolve();
      await stuck.promise;
    });
    const logs = indexers.openLogs();
    const names = Array.from({ length: 12 }, (_, index) => `neighbour-${index}`);
    const own = await logs.open('read-chain');
    await own.publish({ ...nothing, progress: progressOf('read-chain', 1) });
    // One in each partition, so that one stands in that of the chain.
    const open = names.map(async (name) => {
      const log = await slow.open(name);
      await log.publish({ ...nothing, progress: progressOf(name, 7) });
      await log.close();
    });
    await sent.promise;
    await until('all of them have begun', async () => (await logs.readProgress('read-chain')) !== null);
    await own.publish({ ...nothing, progress: progressOf('read-chain', 2) });
    const reopened = indexers.openLogs();
    const asked = reopened.open('read-chain');
    setTimeout(() => stuck.resolve(), 1_500);
    expect((await asked).progress?.block).toBe(2);
    await Promise.all(open);
    await (await asked).close();
    await own.close();
    await Promise.all([slow.close(), logs.close(), reopened.close()]);
  });

  it('takes a batch of many megabytes, in sends that brokers take', async () => {
    const logs = indexers.openLogs();
    const chain = new MemoryChain(DEPTH, 'large');
    chain.mine(Array.from({ length: 12_000 }, (_, value) => transferDraft(1, [0, 1], value)));
    for (let block = 0; block < DEPTH; block++) chain.mine();
    const node = createStateNode('large', DEPTH, () => chain.state);
    const own = createTestLane([node], logs, { recordsMax: 5_000, name: 'large-chain' });
    await stepToEnd(own);
    await own.lane.close();
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
});
