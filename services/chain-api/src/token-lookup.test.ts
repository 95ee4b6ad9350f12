import { type CallResult, type ChainNode, type ContractCall, chainNodes, NodeFault } from '@playline/chain';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { collectionRecord } from './test/minting-world.ts';
import { CHAIN, expectEnvelope, openChainApi } from './test/open-chain-api.ts';
import { addressOf, tokenRow } from './test/rows.ts';

const word = (value: number) => `0x${value.toString(16).padStart(64, '0')}`;
const text = (value: string) => `0x${Buffer.from(value).toString('hex').padEnd(64, '0')}`;
/** Name, symbol, decimals, supply, balance and allowance. */
const ERC20: readonly CallResult[] = [text('Gold'), text('GLD'), word(18), word(5), word(0), word(0)];
const NO_RESULTS: readonly CallResult[] = ERC20.map(() => '0x');
const failToConnect = () => Promise.reject(new NodeFault('unreachable', 'the node is unreachable'));

interface NodeSetup {
  readonly calls?: (contract: string) => Promise<readonly CallResult[]>;
  readonly chainId?: number;
}

/** Opens a chain API. Address 2 is the only ERC-20 contract on its nodes. */
async function openLookup(nodes: readonly NodeSetup[] = [{}], linked: readonly string[] = []) {
  const clock = { nowMs: 1_764_000_000_000 };
  const requests: string[] = [];
  const createNode = ({ url }: { url: string }): ChainNode => {
    const { calls, chainId = 31_337 } = nodes[Number(url)]!;
    const respond = calls ?? (async (contract) => (contract === addressOf(2) ? ERC20 : NO_RESULTS));
    return {
      chainId: async () => chainId,
      calls: (contractCalls: readonly ContractCall[]) => {
        requests.push(contractCalls[0]!.to);
        return respond(contractCalls[0]!.to);
      },
    } as ChainNode;
  };
  const urls = nodes.map((_, index) => String(index));
  const [chain] = chainNodes().parse(JSON.stringify([{ ...CHAIN, urls: ['http://node.test'] }]));
  const api = await openChainApi({
    createNode,
    RATE_LIMIT_CALLS: 100_000,
    TRUSTED_PROXIES: 1,
    wallClockMs: () => clock.nowMs,
    CHAIN_NODES: [{ ...chain!, urls }],
  });
  for (const contract of linked) api.minting.collections.push(collectionRecord(contract));
  const get = (address: string, caller = 1) =>
    api.get(`/${CHAIN.name}/tokens/${address}`, { 'x-forwarded-for': `192.0.2.${caller}` });
  return { api, clock, requests, get };
}

it('a token without transfers is read from its contract and keeps its ETag until it changes', async () => {
  const { get, clock, requests } = await openLookup();
  const response = await get(addressOf(2));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    result: { contract_address: addressOf(2), name: 'Gold', symbol: 'GLD', decimals: 18, is_canonical: false },
  });
  clock.nowMs += 700_000;
  expect((await get(addressOf(2))).headers.get('etag')).toBe(response.headers.get('etag'));
  expect(requests).toHaveLength(2);
});

it('a stored token is read from the store without a lookup', async () => {
  const { api, get, requests } = await openLookup();
  await api.putTokens(tokenRow());
  expect(await (await get(addressOf(2))).json()).toMatchObject({ result: { symbol: 'GOLD' } });
  expect(requests).toEqual([]);
});

it('a lookup uses the next node if a node fails or belongs to another chain', async () => {
  const { get } = await openLookup([{ chainId: 1 }, { calls: failToConnect }, {}]);
  expect((await get(addressOf(2))).status).toBe(200);
});

it('a contract that is not an ERC-20 token returns 404 and is looked up at most once a minute', async () => {
  const { api, get, clock, requests } = await openLookup();
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await get(addressOf(9))).status));
  expect(new Set(statuses)).toEqual(new Set([404]));
  expect(requests).toEqual([addressOf(9)]);
  clock.nowMs += 60_001;
  expect((await get(addressOf(9))).status).toBe(404);
  expect(requests).toHaveLength(2);
  expect(await api.metrics()).toMatch(/playline_chain_api_token_lookups_total\{outcome="none".*\} 2/);
});

it('a token lookup returns 500 while no node responds and is retried at most every five seconds', async () => {
  const { get, clock, requests } = await openLookup([{ calls: failToConnect }]);
  for (const _ of [1, 2]) {
    const response = await get(addressOf(9));
    expect(response.status).toBe(500);
    await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  }
  expect(requests).toHaveLength(1);
  clock.nowMs += 5_001;
  await get(addressOf(9));
  expect(requests).toHaveLength(2);
});

it('lookups of unlinked contracts are limited to ten per second, regardless of linked contracts', async () => {
  const { get, clock, requests } = await openLookup([{}], [addressOf(2)]);
  const statuses: number[] = [];
  for (let caller = 0; caller < 100; caller++) statuses.push((await get(addressOf(1_000 + caller), caller)).status);
  expect(statuses.filter((status) => status === 404)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(90);
  expect(requests).toHaveLength(10);
  expect((await get(addressOf(2))).status).toBe(200);
  clock.nowMs += 1_000;
  expect((await get(addressOf(1_099), 200)).status).toBe(404);
});

it('a caller can look up ten unlinked contracts in a burst, then one every five seconds', async () => {
  const { get, clock } = await openLookup();
  let next = 1_000;
  const request = () => get(addressOf(next++));
  for (let lookup = 0; lookup < 7; lookup++) expect((await request()).status).toBe(404);
  expect((await request()).headers.get('retry-after')).toBe('1');
  clock.nowMs += 1_000;
  for (let lookup = 0; lookup < 3; lookup++) expect((await request()).status).toBe(404);
  clock.nowMs += 1_000;
  const rejected = await request();
  expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([429, '3']);
  clock.nowMs += 3_000;
  expect((await request()).status).toBe(404);
  expect((await request()).status).toBe(429);
});

it('fifty busy callers cannot use up the lookups of new callers', async () => {
  const { get, clock } = await openLookup();
  let next = 10_000;
  const statuses: number[] = [];
  for (let second = 0; second < 30; second++) {
    for (let caller = 1; caller <= 50; caller++) await get(addressOf(next++), caller);
    // The fifty callers are themselves new during the first second.
    if (second > 0) statuses.push((await get(addressOf(next++), 100 + second)).status);
    clock.nowMs += 1_000;
  }
  expect(statuses).toEqual(Array(29).fill(404));
});

it('a chain runs at most eight unlinked lookups, two per caller, and four linked lookups concurrently', async () => {
  const nodeResponse = Promise.withResolvers<readonly CallResult[]>();
  const linked = Array.from({ length: 6 }, (_, index) => addressOf(100 + index));
  const { get, requests } = await openLookup([{ calls: () => nodeResponse.promise }], linked);
  let rejections = 0;
  const send = async (address: string, caller: number) => {
    const { status } = await get(address, caller);
    if (status === 429) rejections++;
    return status;
  };
  const unlinkedLookups = Array.from({ length: 15 }, (_, index) => send(addressOf(200 + index), Math.floor(index / 3)));
  await until('seven unlinked lookups are rejected', () => rejections === 7);
  const linkedLookups = linked.map((address) => send(address, 7));
  await until('two linked lookups are rejected', () => rejections === 9);
  nodeResponse.resolve(NO_RESULTS);
  expect((await Promise.all(unlinkedLookups)).filter((status) => status === 404)).toHaveLength(8);
  expect((await Promise.all(linkedLookups)).filter((status) => status === 404)).toHaveLength(4);
  expect(requests).toHaveLength(12);
});
