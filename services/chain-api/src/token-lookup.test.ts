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
const NOTHING: readonly CallResult[] = ERC20.map(() => '0x');
const away = () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached'));

interface NodeSetup {
  readonly calls?: (contract: string) => Promise<readonly CallResult[]>;
  readonly chainId?: number;
}

/** A chain API whose only ERC-20 is that of address 2, which has not moved. */
async function openLookup(nodes: readonly NodeSetup[] = [{}], linked: readonly string[] = []) {
  const clock = { nowMs: 1_764_000_000_000 };
  const requests: string[] = [];
  const createNode = ({ url }: { url: string }): ChainNode => {
    const { calls, chainId = 31_337 } = nodes[Number(url)]!;
    const answer = calls ?? (async (contract) => (contract === addressOf(2) ? ERC20 : NOTHING));
    return {
      chainId: async () => chainId,
      calls: (given: readonly ContractCall[]) => {
        requests.push(given[0]!.to);
        return answer(given[0]!.to);
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

it('a token without transfers is described by its contract, and its entity tag stays while nothing changes', async () => {
  const { get, clock, requests } = await openLookup();
  const answer = await get(addressOf(2));
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    result: { contract_address: addressOf(2), name: 'Gold', symbol: 'GLD', decimals: 18, is_canonical: false },
  });
  clock.nowMs += 700_000;
  expect((await get(addressOf(2))).headers.get('etag')).toBe(answer.headers.get('etag'));
  expect(requests).toHaveLength(2);
});

it('a looked up token is read from the store once it is stored', async () => {
  const { api, get, requests } = await openLookup();
  await api.putTokens(tokenRow());
  expect(await (await get(addressOf(2))).json()).toMatchObject({ result: { symbol: 'GOLD' } });
  expect(requests).toEqual([]);
});

it('the next node describes a token when one fails or is of another chain', async () => {
  const { get } = await openLookup([{ chainId: 1 }, { calls: away }, {}]);
  expect((await get(addressOf(2))).status).toBe(200);
});

it('a contract that is no ERC-20 is 404, and costs its node one request a minute', async () => {
  const { api, get, clock, requests } = await openLookup();
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await get(addressOf(9))).status));
  expect(new Set(statuses)).toEqual(new Set([404]));
  expect(requests).toEqual([addressOf(9)]);
  clock.nowMs += 60_001;
  expect((await get(addressOf(9))).status).toBe(404);
  expect(requests).toHaveLength(2);
  expect(await api.metrics()).toMatch(/playline_chain_api_token_lookups_total\{outcome="none".*\} 2/);
});

it('an unknown token is 500 while no node answers, and costs the nodes one request in five seconds', async () => {
  const { get, clock, requests } = await openLookup([{ calls: away }]);
  for (const _ of [1, 2]) {
    const answer = await get(addressOf(9));
    expect(answer.status).toBe(500);
    await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  }
  expect(requests).toHaveLength(1);
  clock.nowMs += 5_001;
  await get(addressOf(9));
  expect(requests).toHaveLength(2);
});

it('unknown addresses cost a node ten lookups a second; linked tokens have their own', async () => {
  const { get, clock, requests } = await openLookup([{}], [addressOf(2)]);
  const statuses: number[] = [];
  for (let at = 0; at < 100; at++) statuses.push((await get(addressOf(1_000 + at), at)).status);
  expect(statuses.filter((status) => status === 404)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(90);
  expect(requests).toHaveLength(10);
  expect((await get(addressOf(2))).status).toBe(200);
  clock.nowMs += 1_000;
  expect((await get(addressOf(1_099), 200)).status).toBe(404);
});

it('a caller may look up ten unknown addresses in two seconds, then one every five seconds', async () => {
  const { get, clock } = await openLookup();
  let next = 1_000;
  const request = () => get(addressOf(next++));
  for (let at = 0; at < 7; at++) expect((await request()).status).toBe(404);
  expect((await request()).headers.get('retry-after')).toBe('1');
  clock.nowMs += 1_000;
  for (let at = 0; at < 3; at++) expect((await request()).status).toBe(404);
  clock.nowMs += 1_000;
  const refused = await request();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
  clock.nowMs += 3_000;
  expect((await request()).status).toBe(404);
  expect((await request()).status).toBe(429);
});

it('fifty callers that never pause leave lookups for others', async () => {
  const { get, clock } = await openLookup();
  let next = 10_000;
  const statuses: number[] = [];
  for (let second = 0; second < 30; second++) {
    for (let caller = 1; caller <= 50; caller++) await get(addressOf(next++), caller);
    // In the first second they are new themselves.
    if (second > 0) statuses.push((await get(addressOf(next++), 100 + second)).status);
    clock.nowMs += 1_000;
  }
  expect(statuses).toEqual(Array(29).fill(404));
});

it('a node has at most eight lookups at a time, two of one caller, and four more of linked contracts', async () => {
  const answer = Promise.withResolvers<readonly CallResult[]>();
  const linked = Array.from({ length: 6 }, (_, at) => addressOf(100 + at));
  const { get, requests } = await openLookup([{ calls: () => answer.promise }], linked);
  let refused = 0;
  const send = async (address: string, caller: number) => {
    const { status } = await get(address, caller);
    if (status === 429) refused++;
    return status;
  };
  const unknown = Array.from({ length: 15 }, (_, at) => send(addressOf(200 + at), Math.floor(at / 3)));
  await until('the third of each caller and the fifth caller are refused', () => refused === 7);
  const known = linked.map((address) => send(address, 7));
  await until('two linked ones are refused', () => refused === 9);
  answer.resolve(NOTHING);
  expect((await Promise.all(unknown)).filter((status) => status === 404)).toHaveLength(8);
  expect((await Promise.all(known)).filter((status) => status === 404)).toHaveLength(4);
  expect(requests).toHaveLength(12);
});
