import { expect, it } from 'vitest';
import { createDifferences } from '../report.ts';
import { type ShownMint, walkList } from './lists.ts';
import type { MintDifferenceKind } from './stage.ts';
import { answerOf, createTestStage, toFailed, toMinted } from './test-stage.ts';

const WALK = { collection: 'erc721', pageSize: 2, from: 'first' } as const;

const made = createTestStage();

/** Walks over pages of these requests; the last one is empty and its cursor leads to itself. */
async function walk(pages: readonly (readonly ShownMint[])[], over: Partial<Parameters<typeof walkList>[1]> = {}) {
  const stage = { ...made, differences: createDifferences<MintDifferenceKind>() };
  stage.called.length = 0;
  const all = [...pages, []];
  for (const [at, result] of all.entries()) {
    const next_cursor = `cursor ${Math.min(at + 1, pages.length)}`;
    stage.answers.push(answerOf(200, { result, page: { previous_cursor: 'back', next_cursor } }));
  }
  const found = await walkList(stage, { ...WALK, ...over });
  return { ...found, calls: stage.called.length, differences: stage.differences.byKind() };
}

const [one, two] = [made.assets.good('erc721'), made.assets.good('erc721')];
const [early, late] = ['2026-11-24T12:00:00.000000Z', '2026-11-24T12:00:01.000000Z'];
const first = { ...toMinted(one, 1), created_at: early };
const second = { ...toMinted(two, 2), created_at: late };

it('a walk over a list of mint requests returns the requests of the run in order, and ignores those of other runs', async () => {
  const other = { ...second, reference_id: 'other' };
  const { own, differences, calls } = await walk([[first, second], [other]]);
  expect({ own, differences, calls }).toEqual({ own: [first, second], differences: [], calls: 3 });
});

it('a walk over a list of mint requests reports duplicates, wrong order, and requests with another status than the requested one', async () => {
  expect((await walk([[first], [first]])).differences).toMatchObject([{ kind: 'list', count: 1 }]);
  expect((await walk([[second], [first]])).differences[0]?.first[0]).toContain('is listed after');
  expect((await walk([[first]], { status: 'failed' })).differences[0]?.first[0]).toContain('is succeeded');
  expect((await walk([[first, second]], { isBackwards: true })).differences).toEqual([]);
});

it('a walk over a list of mint requests accepts a second attempt after a failure if something was accepted again during the walk', async () => {
  const failed = { ...toFailed(one, 'no'), created_at: early };
  const again = { ...first, created_at: late };
  expect((await walk([[failed], [again]], { mayRepeat: true })).differences).toEqual([]);
  expect((await walk([[failed], [again]])).differences).toMatchObject([{ kind: 'list', count: 1 }]);
  expect((await walk([[first], [again]], { mayRepeat: true })).differences).toMatchObject([{ count: 1 }]);
});

it('a walk over a list of mint requests reports an answer that is not a page', async () => {
  const { differences } = await walk([[{ ...first, extra: 1 } as ShownMint]]);
  expect(differences).toMatchObject([{ kind: 'answer', count: 1 }]);
});
