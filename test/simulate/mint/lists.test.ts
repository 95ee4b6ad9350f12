import { expect, it } from 'vitest';
import { createDifferences } from '../report.ts';
import { type ShownMint, walkList } from './lists.ts';
import type { MintDifferenceKind } from './stage.ts';
import { createResponse, createTestStage, toFailed, toMinted } from './test-stage.ts';

const WALK = { collection: 'erc721', pageSize: 2, from: 'first' } as const;

const baseStage = createTestStage();

/** Walks through the given pages and an empty last page, whose cursor returns the last page again. */
async function walk(pages: readonly (readonly ShownMint[])[], options: Partial<Parameters<typeof walkList>[1]> = {}) {
  const stage = { ...baseStage, differences: createDifferences<MintDifferenceKind>() };
  stage.called.length = 0;
  const all = [...pages, []];
  for (const [index, result] of all.entries()) {
    const next_cursor = `cursor ${Math.min(index + 1, pages.length)}`;
    stage.responses.push(createResponse(200, { result, page: { previous_cursor: 'back', next_cursor } }));
  }
  const found = await walkList(stage, { ...WALK, ...options });
  return { ...found, calls: stage.called.length, differences: stage.differences.byKind() };
}

const [one, two] = [baseStage.assets.mintable('erc721'), baseStage.assets.mintable('erc721')];
const [early, late] = ['2026-11-24T12:00:00.000000Z', '2026-11-24T12:00:01.000000Z'];
const first = { ...toMinted(one, 1), created_at: early };
const second = { ...toMinted(two, 2), created_at: late };

it('walkList returns the run’s mint requests in list order and ignores requests from other runs', async () => {
  const other = { ...second, reference_id: 'other' };
  const { requests, differences, calls } = await walk([[first, second], [other]]);
  expect({ requests, differences, calls }).toEqual({ requests: [first, second], differences: [], calls: 3 });
});

it('walkList reports duplicate mint requests, a wrong order and a wrong status', async () => {
  expect((await walk([[first], [first]])).differences).toMatchObject([{ kind: 'list', count: 1 }]);
  expect((await walk([[second], [first]])).differences[0]?.first[0]).toContain('is listed after');
  expect((await walk([[first]], { status: 'failed' })).differences[0]?.first[0]).toContain('is succeeded');
  expect((await walk([[first, second]], { isBackwards: true })).differences).toEqual([]);
});

it('with mayRepeat, walkList accepts a second attempt for a failed mint request', async () => {
  const failed = { ...toFailed(one, 'no'), created_at: early };
  const again = { ...first, created_at: late };
  expect((await walk([[failed], [again]], { mayRepeat: true })).differences).toEqual([]);
  expect((await walk([[failed], [again]])).differences).toMatchObject([{ kind: 'list', count: 1 }]);
  expect((await walk([[first], [again]], { mayRepeat: true })).differences).toMatchObject([{ count: 1 }]);
});

it('walkList reports a response that is not a page of mint requests', async () => {
  const { differences } = await walk([[{ ...first, extra: 1 } as ShownMint]]);
  expect(differences).toMatchObject([{ kind: 'answer', count: 1 }]);
});
