import { expect, it } from 'vitest';
import { sendConflict, sendOrder } from './orders.ts';
import { answerOf, createTestStage, quotaAnswer } from './test-stage.ts';

const conflict = (values: readonly string[]) => ({ code: 'CONFLICT_ERROR', details: { id: 'reference_id', values } });
const bodyIds = (body: unknown) =>
  (body as { assets: { reference_id: string }[] }).assets.map(({ reference_id }) => reference_id);

function openOrder(count = 3) {
  const stage = createTestStage();
  const assets = Array.from({ length: count }, () => stage.assets.good('erc721'));
  const ids = assets.map(({ referenceId }) => referenceId);
  return { stage, assets, ids };
}

it('a mint order is noted after 202, each asset once', async () => {
  const { stage, assets, ids } = openOrder();
  stage.answers.push(quotaAnswer());
  await sendOrder(stage, assets);
  expect(stage.book.entries().map(({ asset, attemptsMin }) => [asset.referenceId, attemptsMin])).toEqual(
    ids.map((id) => [id, 1]),
  );
  expect(stage.differences.total).toBe(0);
});

it('a mint order requests after a lost answer only the assets again that 409 does not name', async () => {
  const { stage, assets, ids } = openOrder();
  stage.answers.push(answerOf(409, conflict([ids[1]!]), { isDoubtful: true }), quotaAnswer());
  await sendOrder(stage, assets);
  expect(bodyIds(stage.called[1]?.body)).toEqual([ids[0], ids[2]]);
  expect(stage.book.accepted).toBe(3);
  expect(stage.differences.total).toBe(0);
});

it('a mint order that is refused as taken although all earlier answers arrived is a difference', async () => {
  const { stage, assets, ids } = openOrder();
  stage.answers.push(answerOf(409, conflict(ids)));
  await sendOrder(stage, assets);
  expect(stage.differences.byKind()).toMatchObject([{ kind: 'answer', count: 1 }]);
  expect(stage.book.entries()).toEqual([]);
});

it('a mint order without any answer may be stored or not', async () => {
  const { stage, assets } = openOrder(1);
  stage.answers.push(answerOf(0, null, { status: null, isDoubtful: true }));
  await sendOrder(stage, assets);
  expect(stage.book.entries()).toMatchObject([{ attemptsMin: 0, attemptsMax: 1 }]);
  expect(stage.differences.total).toBe(0);
});

it('a mint order whose quota differs between headers and body is a difference', async () => {
  const { stage, assets } = openOrder(1);
  stage.answers.push(quotaAnswer({ json: { imx_mint_requests_limit: '7' } }));
  await sendOrder(stage, assets);
  expect(stage.differences.byKind()[0]?.first[0]).toContain('imx-mint-requests-limit is 2000 as a header and 7');
});

it('a mint order of a taken reference id must be refused with 409 for just that one, and its new reference ids must stay unknown', async () => {
  const { stage, assets, ids } = openOrder(2);
  const order = { name: 'again', assets, taken: [ids[1]!], fresh: [ids[0]!] };
  stage.answers.push(answerOf(409, conflict([ids[1]!])), answerOf(404, {}));
  await sendConflict(stage, order);
  expect(stage.differences.total).toBe(0);
  stage.answers.push(quotaAnswer(), answerOf(404, {}));
  await sendConflict(stage, order);
  stage.answers.push(answerOf(409, conflict(ids)), answerOf(200, {}));
  await sendConflict(stage, order);
  expect(stage.differences.byKind().map(({ kind, count }) => [kind, count])).toEqual([
    ['answer', 2],
    ['uninvited', 1],
  ]);
});
