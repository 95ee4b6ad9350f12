import { expect, it } from 'vitest';
import type { RequestedAsset } from './assets.ts';
import { checkChain, toToken } from './check-chain.ts';
import { checkOutcomes, checkRows, toRow } from './check-requests.ts';
import type { ShownMint } from './lists.ts';
import { createTestStage, type TestStage, toFailed, toMinted } from './test-stage.ts';

const messageOf = ({ expected }: RequestedAsset) => ('message' in expected ? expected.message : '');
const toWord = (value: bigint) => value.toString(16).padStart(64, '0');

function createWorld() {
  const stage = createTestStage(3);
  const mintable = Array.from({ length: 6 }, () => stage.assets.mintable());
  const failing = stage.assets.failing();
  const [winner, loser] = stage.assets.rivals();
  stage.ledger.accept([...mintable, failing, winner, loser]);
  const shown = new Map<string, ShownMint>();
  for (const [index, asset] of [...mintable, winner].entries()) shown.set(asset.referenceId, toMinted(asset, index));
  for (const asset of [failing, loser]) shown.set(asset.referenceId, toFailed(asset, messageOf(asset)));
  stage.stored.push(...[...shown.values()].map(toRow));
  putHoldings(stage, shown);
  const minted = () => [...shown.values()].filter(({ status }) => status === 'succeeded');
  return { stage, shown, mintable, failing, winner, loser, tokens: minted().map(toToken) };
}

function putHoldings({ holdings, options }: TestStage, shown: ReadonlyMap<string, ShownMint>): void {
  for (const { status, collection_address, token_id, owner_address, amount } of shown.values()) {
    if (status !== 'succeeded') continue;
    const [id, owner] = [toWord(BigInt(token_id!)), toWord(BigInt(owner_address))];
    if (collection_address === options.contracts.erc721) holdings.set(`0x6352211e${id}`, `0x${owner}`);
    else {
      const key = `0x00fdd58e${owner}${id}`;
      holdings.set(key, `0x${toWord(BigInt(holdings.get(key) ?? '0x0') + BigInt(amount ?? '1'))}`);
    }
  }
}

type World = ReturnType<typeof createWorld>;

async function check(corrupt: (world: World) => unknown = () => {}) {
  const world = createWorld();
  corrupt(world);
  const { stage, shown, tokens } = world;
  checkOutcomes(stage, shown);
  await checkRows(stage, shown);
  await checkChain(stage, shown, tokens);
  return stage.differences.byKind().map(({ kind }): string => kind);
}

const change = ({ shown }: World, { referenceId }: RequestedAsset, fields: Partial<ShownMint>) =>
  void shown.set(referenceId, { ...shown.get(referenceId)!, ...fields });

const OTHER_OWNER = `0x${'99'.repeat(20)}`;

it('the mint checks find no differences if requests, rows and the chain agree', async () => {
  expect(await check()).toEqual([]);
});

it.each<[string, (world: World) => unknown, string[]]>([
  ['an accepted asset that is not in the list', ({ shown, failing }) => shown.delete(failing.referenceId), ['missing']],
  ['a pending asset', (world) => change(world, world.failing, { status: 'pending', error: null }), ['open', 'row']],
  [
    'a minted asset that must fail',
    ({ shown, failing }) => shown.set(failing.referenceId, toMinted(failing, 90)),
    ['outcome', 'row', 'chain'],
  ],
  ['a wrong error message', (world) => change(world, world.failing, { error: { message: 'no' } }), ['outcome', 'row']],
  [
    'two requests that both receive one token',
    ({ shown, loser }) => shown.set(loser.referenceId, toMinted(loser, 91)),
    ['outcome', 'row', 'chain'],
  ],
  [
    'two requests for one token that both fail',
    ({ shown, winner }) => shown.set(winner.referenceId, toFailed(winner, messageOf(winner))),
    ['outcome', 'row', 'uninvited'],
  ],
  [
    'a request with a different owner',
    (world) => change(world, world.mintable[0]!, { owner_address: OTHER_OWNER }),
    ['member', 'row', 'chain'],
  ],
  [
    'a row that differs from the list',
    ({ stage: { stored } }) => Object.assign(stored[0]!, { error: 'late' }),
    ['row'],
  ],
  ['an attempt that was never requested', ({ stage: { stored } }) => stored.push(stored[0]!), ['row']],
  [
    'a row for a refused reference id',
    ({ stage: { stored } }) => stored.push({ ...stored[0]!, referenceId: 'refused' }),
    ['uninvited'],
  ],
  [
    'a refused request in the list',
    ({ shown, stage }) => {
      const asset = stage.assets.mintable('erc721');
      shown.set(asset.referenceId, toFailed(asset, 'no'));
    },
    ['uninvited'],
  ],
  ['a token that is not on the chain', ({ tokens }) => tokens.splice(0, 1), ['chain']],
  [
    'a token that is on the chain twice',
    ({ tokens }) => tokens.push({ ...tokens[0]!, activityId: 'another' }),
    ['uninvited'],
  ],
  [
    'a token with a different owner on the chain',
    ({ stage: { holdings } }) => holdings.set([...holdings.keys()][0]!, `0x${toWord(999n)}`),
    ['chain'],
  ],
])('the mint checks report %s', async (_what, corrupt, kinds) => {
  expect((await check(corrupt)).sort()).toEqual([...kinds].sort());
});
