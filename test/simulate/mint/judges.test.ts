import { describe, expect, it } from 'vitest';
import type { RequestedAsset } from './assets.ts';
import { judgeChain } from './judge-chain.ts';
import { judgeOutcomes, judgeRows } from './judge-requests.ts';
import type { ShownMint } from './lists.ts';
import { createMadeStage, type MadeStage, toChainToken, toFailed, toMinted, toRow } from './made-stage.ts';

const messageOf = ({ expected }: RequestedAsset) => ('message' in expected ? expected.message : '');
const toWord = (value: bigint) => value.toString(16).padStart(64, '0');

/** A correct world with every kind of request. */
function openWorld() {
  const stage = createMadeStage(3);
  const good = Array.from({ length: 6 }, () => stage.assets.good());
  const bad = stage.assets.bad();
  const [winner, loser] = stage.assets.rivals();
  stage.book.accept([...good, bad, winner, loser]);
  const shown = new Map<string, ShownMint>();
  for (const [at, asset] of [...good, winner].entries()) shown.set(asset.referenceId, toMinted(asset, at));
  for (const asset of [bad, loser]) shown.set(asset.referenceId, toFailed(asset, messageOf(asset)));
  stage.stored.push(...[...shown.values()].map(toRow));
  putHoldings(stage, shown);
  const minted = () => [...shown.values()].filter(({ status }) => status === 'succeeded');
  return { stage, shown, good, bad, winner, loser, tokens: minted().map(toChainToken) };
}

function putHoldings({ holdings, options }: MadeStage, shown: ReadonlyMap<string, ShownMint>): void {
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

type World = ReturnType<typeof openWorld>;

async function judge(spoil: (world: World) => void = () => {}) {
  const world = openWorld();
  spoil(world);
  const { stage, shown, tokens } = world;
  judgeOutcomes(stage, shown);
  await judgeRows(stage, shown);
  await judgeChain(stage, shown, tokens);
  return stage.differences.byKind().map(({ kind, first }) => ({ kind, first: first[0] }));
}

const change = ({ shown }: World, { referenceId }: RequestedAsset, over: Partial<ShownMint>) =>
  void shown.set(referenceId, { ...shown.get(referenceId)!, ...over });

describe('requests, rows and chain', () => {
  it('cause no differences when all of them agree with the book', async () => {
    expect(await judge()).toEqual([]);
  });

  it.each<[string, (world: World) => void, string[]]>([
    ['an accepted asset that is not shown', ({ shown, bad }) => void shown.delete(bad.referenceId), ['missing']],
    [
      'an asset that is still pending',
      (world) => change(world, world.bad, { status: 'pending', error: null }),
      ['open', 'row'],
    ],
    [
      'a bad asset that was minted',
      (world) => world.shown.set(world.bad.referenceId, toMinted(world.bad, 90)),
      ['outcome', 'row', 'chain'],
    ],
    ['a failure in other words', (world) => change(world, world.bad, { error: { message: 'no' } }), ['outcome', 'row']],
    [
      'rivals of which both have the token',
      (world) => world.shown.set(world.loser.referenceId, toMinted(world.loser, 91)),
      ['outcome', 'row', 'chain'],
    ],
    [
      'rivals of which none has it',
      (world) => world.shown.set(world.winner.referenceId, toFailed(world.winner, messageOf(world.winner))),
      ['outcome', 'row', 'uninvited'],
    ],
    [
      'another owner',
      (world) => change(world, world.good[0]!, { owner_address: `0x${'99'.repeat(20)}` }),
      ['member', 'row', 'chain'],
    ],
    [
      'a row of a revision that is not shown',
      ({ stage }) => void stage.stored.splice(0, 1, { ...stage.stored[0]!, error: 'late' }),
      ['row'],
    ],
    ['a second attempt that was never requested', ({ stage }) => void stage.stored.push(stage.stored[0]!), ['row']],
    [
      'a row of a reference id that was refused',
      ({ stage }) => void stage.stored.push({ ...stage.stored[0]!, referenceId: 'refused' }),
      ['uninvited'],
    ],
    [
      'a request that is shown and was refused',
      (world) => {
        const asset = world.stage.assets.good('erc721');
        const request = toFailed(asset, 'no');
        world.shown.set(asset.referenceId, request);
      },
      ['uninvited'],
    ],
    ['a token that the chain does not have', ({ tokens }) => void tokens.splice(0, 1), ['chain']],
    [
      'a token that the chain has twice',
      ({ tokens }) => void tokens.push({ ...tokens[0]!, activityId: 'another' }),
      ['uninvited'],
    ],
    [
      'a token that somebody else owns by now',
      ({ stage }) => stage.holdings.set([...stage.holdings.keys()][0]!, `0x${toWord(999n)}`),
      ['chain'],
    ],
  ])('show %s', async (_what, spoil, kinds) => {
    const found = await judge(spoil);
    expect(found.map(({ kind }) => kind).sort()).toEqual([...kinds].sort());
  });
});
