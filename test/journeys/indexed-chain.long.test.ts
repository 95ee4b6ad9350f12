import { type ActivityRow, createReadActivities, toActivityRow } from '@playline/chain';
import { createRpcNode } from '@playline/chain/rpc';
import { activityCodec, FRAME_BYTES, TOPICS, tokenCodec } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import { openServiceProcesses, testStores, until } from '@playline/testkit';
import { type Address, parseEther, stringToHex } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHAIN_NAME, type ChainStores, call, FINAL_AFTER, mainOf, openChainStores } from './chain-stores.ts';

let stores: ChainStores;
let chain: ChainStores['chain'];
let indexers: ReturnType<typeof openServiceProcesses>;
let writers: ReturnType<typeof openServiceProcesses>;

beforeAll(async () => {
  stores = await openChainStores({ node: { rangeBlocks: 50 } });
  chain = stores.chain;
  const settings = { ...stores.environment, LOG_LEVEL: 'warn' };
  indexers = openServiceProcesses(mainOf('chain-indexer'), settings);
  writers = openServiceProcesses(mainOf('activity-writer'), { ...settings, CONSUMER_GROUP: `${stores.prefix}writer` });
});
afterAll(async () => {
  await Promise.all([indexers?.close(), writers?.close()]);
  await stores?.close();
});

const POSITION = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };
const valuesOf = async (name: string) =>
  (await readTopic({ brokers: testStores().kafka, topic: stores.prefix + name })).map(({ value }) => value!);
const published = async (): Promise<ActivityRow[]> =>
  (await valuesOf(TOPICS.activities.name))
    .filter((value) => value !== null)
    .map((value) => toActivityRow(activityCodec.decode(value.subarray(FRAME_BYTES)), POSITION));
const detailsOf = (rows: readonly ActivityRow[]): Record<string, unknown>[] =>
  rows.map(({ type, details }) => ({ type, ...(JSON.parse(details) as Record<string, unknown>) }));

/** Computes the activity ids in all final blocks from new requests to the node, block by block. */
async function computeIndex(): Promise<string[]> {
  const node = createRpcNode({ name: 'test', url: chain.rpc });
  const read = createReadActivities({ chain: CHAIN_NAME, nativeSymbol: 'ETH', marketplaces: [], bridges: [] });
  const final = (await node.block('finalized'))!.number;
  const blocks = await node.blocks(0, final);
  const logs = (await Promise.all(blocks.map(({ hash }) => node.logsOf(hash)))).flat();
  const all = [...read({ blocks, logs, parentTimestampS: null })];
  return all.flatMap(({ reading }) => reading.records.map((record) => toActivityRow(record, POSITION).id));
}

async function chainCommand(...args: readonly string[]): Promise<{ code: number; out: string }> {
  const { code, out, err } = await stores.operate('chain', ...args);
  return { code, out: out + err };
}

async function untilIndexed(): Promise<string[]> {
  const expected = await computeIndex();
  await until('all final activities are published', async () => (await published()).length >= expected.length);
  return expected;
}

describe('the index of a chain from a real node', () => {
  let erc20: Address;

  it('the index contains mints, transfers and burns for three token standards, and token names', async () => {
    await indexers.start();
    const [admin, player] = chain.accounts as readonly [Address, Address];
    const demo = await chain.deployDemo(admin);
    erc20 = demo.erc20 as Address;
    const to = player.toLowerCase();
    await chain.send({ to: erc20, data: call('demo-erc20', 'mint', [admin, parseEther('5')]) });
    await chain.send({ to: erc20, data: call('demo-erc20', 'transfer', [player, 7n]) });
    const nft = demo.erc721 as Address;
    await chain.send({ to: nft, data: call('demo-erc721', 'mintBatch', [[{ to: admin, tokenIds: [7n, 8n] }]]) });
    await chain.send({ to: nft, data: call('demo-erc721', 'burn', [8n]) });
    const multi = demo.erc1155 as Address;
    await chain.send({ to: multi, data: call('demo-erc1155', 'safeMintBatch', [player, [1n, 2n], [10n, 20n], '0x']) });
    const old = await chain.deploy('old-erc20', [stringToHex('Early', { size: 32 }), stringToHex('ERL', { size: 32 })]);
    await chain.send({ to: old, data: call('old-erc20', 'mint', [player, 3n]) });
    await chain.deploy('consecutive-erc721', [player, 3n]);
    await chain.mine(FINAL_AFTER);
    const expected = await untilIndexed();
    const rows = await published();
    expect(rows.map(({ id }) => id)).toEqual(expected);
    const erc721 = (token_id: string) => ({ contract_type: 'ERC721', contract_address: nft, token_id, amount: '1' });
    const from = admin.toLowerCase();
    expect(detailsOf(rows)).toEqual(
      expect.arrayContaining([
        { type: 'transfer', from, to, amount: '7', asset: { contract_type: 'ERC20', contract_address: erc20 } },
        { type: 'mint', to: from, amount: '1', asset: erc721('7') },
        { type: 'burn', from, amount: '1', asset: erc721('8') },
      ]),
    );
    const multiRows = rows.filter(({ details }) => JSON.parse(details).asset.contract_address === multi);
    expect(multiRows).toHaveLength(2);
    expect(rows.slice(-3).map(({ details }) => JSON.parse(details).asset.token_id)).toEqual(['0', '1', '2']);
    const tokens = (await valuesOf(TOPICS.tokens.name)).map((value) => tokenCodec.decode(value.subarray(FRAME_BYTES)));
    expect(tokens.map(({ name, symbol, decimals }) => [name, symbol, decimals])).toContainEqual(['Early', 'ERL', null]);
    expect(tokens.some(({ decimals }) => decimals === 18)).toBe(true);
  });

  it('the index is correct after a reorganisation, and after the indexer and the node were killed', async () => {
    const [, player] = chain.accounts as readonly [Address, Address];
    const mint = (value: bigint) => chain.send({ to: erc20, data: call('demo-erc20', 'mint', [player, value]) });
    for (let value = 1n; value <= 3n; value++) await mint(value);
    await chain.reorg(3);
    await mint(4n);
    await chain.mine(FINAL_AFTER);
    await indexers.close();
    await chain.save();
    await chain.kill();
    await chain.restart();
    await chain.mine(FINAL_AFTER);
    await indexers.start();
    await mint(5n);
    await chain.mine(FINAL_AFTER);
    const expected = await untilIndexed();
    expect((await published()).map(({ id }) => id)).toEqual(expected);
  });

  it('commands compare the index with the history and publish only missing activities', async () => {
    const { code: statusCode, out: status } = await chainCommand('status', '--json');
    expect(statusCode, status).toBe(0);
    const { head, horizon, indexed, behind } = JSON.parse(status);
    expect([head - horizon, horizon - indexed, behind]).toEqual([FINAL_AFTER, behind, behind]);
    const before = await chainCommand('verify', '--chain', CHAIN_NAME);
    expect(before.code, before.out).toBe(1);
    expect(before.out).toContain('is not in the history');
    const count = (await published()).length;
    const backfill = ['backfill', '--chain', CHAIN_NAME, '--from', '0', '--to'];
    const early = await chainCommand(...backfill, String(indexed), '--writer-group', `${stores.prefix}writer`);
    expect(early.code, early.out).toBe(0);
    expect((await published()).length).toBe(count);
    await writers.start();
    await until('the history is written', async () => (await chainCommand('verify', '--chain', CHAIN_NAME)).code === 0);
    const beyond = await chainCommand(...backfill, String(indexed + 100));
    expect(beyond.code).toBe(2);
    expect(beyond.out).not.toContain(chain.rpc);
  });
});
