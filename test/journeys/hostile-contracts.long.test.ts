/** Contracts that try to block a chain's history, or the descriptions of honest tokens. */
import { TOPICS } from '@playline/contracts';
import { type HttpProcess, openHttpProcess, openServiceProcesses, until } from '@playline/testkit';
import type { Address, Hash } from 'viem';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CHAIN_ID, CHAIN_NAME, type ChainStores, call, FINAL_AFTER, mainOf, openChainStores } from './chain-stores.ts';

const PARTITIONS = 2;
/** `ConsecutiveTransfer(uint256,uint256,address,address)` from EIP-2309. */
const CONSECUTIVE_TRANSFER = '0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d';

let stores: ChainStores;
let chain: ChainStores['chain'];
let services: ReturnType<typeof openServiceProcesses>[];
let api: HttpProcess;

beforeAll(async () => {
  stores = await openChainStores({ partitions: PARTITIONS });
  chain = stores.chain;
  const environment = { ...stores.environment, LOG_LEVEL: 'error' };
  services = [
    openServiceProcesses(mainOf('chain-indexer'), environment),
    openServiceProcesses(mainOf('activity-writer'), { ...environment, CONSUMER_GROUP: `${stores.prefix}writer` }),
  ];
  api = await openHttpProcess(mainOf('chain-api'), {
    ...environment,
    CHAINS: JSON.stringify([{ name: CHAIN_NAME, id: CHAIN_ID }]),
    CURSOR_KEYS: `1=${'ab'.repeat(32)}`,
    RATE_LIMIT_CALLS: '1000000',
    ACTIVITY_PARTITIONS: String(PARTITIONS),
  });
  await Promise.all(services.map((each) => each.start()));
});
afterAll(async () => {
  await api?.close();
  await Promise.all((services ?? []).map((each) => each.close()));
  await stores?.close();
});

const word = (value: bigint | number | Address): Hash => `0x${BigInt(value).toString(16).padStart(64, '0')}`;
const get = (path: string) => fetch(`${api.url}/v1/chains/${CHAIN_NAME}${path}`);

async function setNextBlockTime(seconds: number): Promise<void> {
  const { timestamp } = await chain.client.getBlock();
  await chain.client.setNextBlockTimestamp({ timestamp: timestamp + BigInt(seconds) });
}

async function historyOf(contract: Address): Promise<readonly unknown[]> {
  const response = await get(`/activity-history?contract_address=${contract}&page_size=200`);
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return ((await response.json()) as { result: unknown[] }).result;
}

it('a transaction that claims 200,000 tokens is reported, and delays later transfers by less than 10 s', async () => {
  const [player] = chain.accounts as readonly [Address];
  const [hostile, erc20] = [await chain.deploy('log-emitter'), (await chain.deployDemo(player)).erc20 as Address];
  const log = { topics: [CONSECUTIVE_TRANSFER, word(0), word(0), word(player)], data: word(4_999) };
  const mint = () => chain.send({ to: erc20, data: call('demo-erc20', 'mint', [player, 5n]) });
  const untilListed = async (count: number) => {
    const startedMs = performance.now();
    await chain.mine(FINAL_AFTER);
    await until('the honest transfer is listed', async () => (await historyOf(erc20)).length === count, 110_000);
    return performance.now() - startedMs;
  };
  await mint();
  await untilListed(1);
  await mint();
  const usualMs = await untilListed(2);
  await setNextBlockTime(2);
  await chain.send({ to: hostile, data: call('log-emitter', 'repeatLog', [log, 40n]) });
  const block = Number(await chain.client.getBlockNumber());
  await mint();
  const laterMs = await untilListed(3);
  expect(laterMs, `${usualMs} ms without the hostile block`).toBeLessThan(usualMs + 10_000);
  const named = `${CHAIN_NAME} ${hostile.toLowerCase()}: 190000 tokens (ids 0 to 4999) from 38 logs in block ${block}`;
  const deadLetters = await stores.operate('dead-letters', 'list', '--topic', TOPICS.activities.name, '--json');
  expect(deadLetters.out).toContain(named.slice(0, 80));
  const verified = await stores.operate('chain', 'verify', '--chain', CHAIN_NAME);
  expect(verified.out + verified.err).toContain(
    `block ${block}, log 2: 5000 tokens of ${hostile.toLowerCase()} (ids 0 to 4999) exceed the limit per contract and block`,
  );
});

it('an honest range in every block is indexed even if all blocks claim more tokens than can be indexed', async () => {
  const [player] = chain.accounts as readonly [Address];
  const contracts: { address: Address; tokens: number }[] = [];
  for (const tokens of [10_000, 10_000, ...Array(8).fill(500), 1_000])
    contracts.push({ address: await chain.deploy('log-emitter'), tokens });
  const honest = contracts.at(-1)!;
  const BLOCKS = 4;
  for (let block = 0; block < BLOCKS; block++) {
    for (const { address, tokens } of contracts) {
      const first = block * tokens;
      const topics = [CONSECUTIVE_TRANSFER, word(first), word(0), word(player)];
      const data = call('log-emitter', 'emitLogs', [[{ topics, data: word(first + tokens - 1) }]]);
      await chain.client.sendTransaction({ account: player, to: address, chain: null, data });
    }
    await setNextBlockTime(1);
    await chain.mine();
  }
  const { timestamp } = await chain.client.getBlock();
  await chain.mine(FINAL_AFTER);
  const from = encodeURIComponent(new Date(Number(timestamp) * 1_000).toISOString());
  const countLast = async ({ address }: typeof honest) => {
    const response = await get(`/activity-history?contract_address=${address}&from_indexed_at=${from}&page_size=200`);
    return ((await response.json()) as { result: unknown[] }).result.length;
  };
  await until('the honest range in the last block is listed', async () => (await countLast(honest)) === 200);
  for (const hostile of contracts.slice(0, 2)) expect(await historyOf(hostile.address)).toEqual([]);
});

it('an honest token is described within a minute even if hostile tokens are in the same blocks', async () => {
  const [player] = chain.accounts as readonly [Address];
  const toName = async (contract: Address) => {
    const response = await get(`/tokens/${contract}`);
    return response.ok ? ((await response.json()) as { result: { name: string | null } }).result.name : undefined;
  };
  const word32 = (text: string) => `0x${Buffer.from(text).toString('hex').padEnd(64, '0')}` as Hash;
  for (const name of ['Honest', 'Fair']) {
    const hostile = await chain.deploy('hostile-erc20');
    const honest = await chain.deploy('old-erc20', [word32(name), word32('HON')]);
    for (const [to, contract] of [[hostile, 'hostile-erc20'] as const, [honest, 'old-erc20'] as const]) {
      const data = call(contract, 'mint', [player, 1n]);
      await chain.client.sendTransaction({ account: player, to, chain: null, data });
    }
    await chain.mine(FINAL_AFTER + 1);
    await until('the honest token is described', async () => (await toName(honest)) === name, 60_000);
    await until('the hostile token has no name', async () => (await toName(hostile)) === null, 60_000);
  }
});

it('a token without transfers can be looked up by address, unlike other contracts and unused addresses', async () => {
  const silver = await chain.deploy('demo-erc20', [chain.accounts[0], 'Silver', 'SLV']);
  const response = await get(`/tokens/${silver}`);
  expect(response.status, await response.clone().text()).toBe(200);
  expect(await response.json()).toMatchObject({ result: { name: 'Silver', symbol: 'SLV', decimals: 18 } });
  const nft = await chain.deploy('consecutive-erc721', [chain.accounts[1], 0n]);
  const emitter = await chain.deploy('log-emitter');
  const [sha256, unused] = [2, 0xdead].map((number) => `0x${number.toString(16).padStart(40, '0')}` as Address);
  for (const address of [nft, emitter, sha256, unused, chain.accounts[1]])
    expect((await get(`/tokens/${address}`)).status, address).toBe(404);
});
