import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MemoryChain } from './test/memory-chain.ts';
import { openRpcServer, type RpcServer } from './test/open-rpc-server.ts';
import { openRealIndexers } from './test/real-indexer.ts';

let indexers: Awaited<ReturnType<typeof openRealIndexers>>;
const servers: RpcServer[] = [];

beforeAll(async () => {
  indexers = await openRealIndexers();
});
afterAll(async () => {
  await indexers?.close();
  await Promise.all(servers.map((server) => server.close()));
});

it('an indexer whose node has no new blocks is degraded but ready, and recovers with the next block', async () => {
  const chain = new MemoryChain(4, 'still-chain');
  for (let block = 0; block < 10; block++) chain.mine();
  const server = await openRpcServer(chain);
  servers.push(server);
  const settings = { name: 'still-chain', id: 'eip155:31337', urls: [server.url], pollMs: 50, stillAfterS: 1 };
  const child = await indexers.start(settings);
  const readyz = async () => {
    const response = await fetch(`${child.admin}/readyz`);
    return { status: response.status, ...((await response.json()) as { degraded?: string[]; reasons?: object }) };
  };
  const reported = await until('the stall is reported', async () => {
    const found = await readyz();
    return found.degraded === undefined ? null : found;
  });
  expect(reported).toMatchObject({
    status: 200,
    degraded: ['still-chain'],
    reasons: { 'still-chain': expect.stringMatching(/^no node has had a new block for \d+ s; the latest is 10$/) },
  });
  const metrics = await (await fetch(`${child.admin}/metrics`)).text();
  expect(metrics).toMatch(/playline_chain_indexer_head_unchanged_seconds\{.*chain="still-chain".*\} [1-9]/);
  expect(metrics).toMatch(/playline_chain_indexer_node_block_number\{.*node="still-chain\/1".*\} 10/);
  chain.mine();
  await until('the indexer has recovered', async () => (await readyz()).degraded === undefined);
});
