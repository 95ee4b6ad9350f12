import { expect, it } from 'vitest';
import { sendConflict, sendOrder } from './orders.ts';
import { createTestStage, quotaResponse, responseOf } from './test-stage.ts';

const conflict = (values: readonly string[]) => ({ code: 'CONFLICT_ERROR', details: { id: 'reference_id', values } });
const bodyIds = (body: unknown) =>
  (body as { assets: { reference_id: string }[] }).assets.map(({ reference_id }) => reference_id);

function openOrder(count = 3) {
  const stage = createTestStage();
  const assets = Array.from({ length: count }, () => stage.assets.mintable('erc721'));
  const ids = assets.map(({ referenceId }) => referenceId);
  return { stage, assets, ids };
}

it('a mint order is recorded after 202, with each asset once', async () => {
  const { stage, assets, ids } = openOrder();
  stage.responses.push(quotaResponse());
  await sendOrder(stage, assets);
  expect(stage.book.entries().map(({ asset, attemptsMin }) => [asset.referenceId, attemptsMin])).toEqual(
    ids.map((id) => [id, 1]),
  );
  expect(stage.differences.total).toBe(0);
});

it('after a lost response, a mint order is repeated only with the assets that the 409 does not list', async () => {
  const { stage, assets, ids } = openOrder();
  stage.responses.push(responseOf(409, conflict([ids[1]!]), { isDoubtful: true }), quotaResponse());
  await sendOrder(stage, assets);
  expect(bodyIds(stage.called[1]?.body)).toEqual([ids[0], ids[2]]);
  expect(stage.book.accepted).toBe(3);
  expect(stage.differences.total).toBe(0);
});

it('a mint order refused with taken ids although no response was lost is a difference', async () => {
  const { stage, assets, ids } = openOrder();
  stage.responses.push(responseOf(409, conflict(ids)));
  await sendOrder(stage, assets);
  expect(stage.differences.byKind()).toMatchObject([{ kind: 'answer', count: 1 }]);
  expect(stage.book.entries()).toEqual([]);
});

it('a mint order without a response may or may not be stored', async () => {
  const { stage, assets } = openOrder(1);
  stage.responses.push(responseOf(0, null, { status: null, isDoubtful: true }));
  await sendOrder(stage, assets);
  expect(stage.book.entries()).toMatchObject([{ attemptsMin: 0, attemptsMax: 1 }]);
  expect(stage.differences.total).toBe(0);
});

it('a mint order with different quotas in headers and body is a difference', async () => {
  const { stage, assets } = openOrder(1);
  stage.responses.push(quotaResponse({ json: { imx_mint_requests_limit: '7' } }));
  await sendOrder(stage, assets);
  expect(stage.differences.byKind()[0]?.first[0]).toContain('imx-mint-requests-limit is 2000 as a header and 7');
});

it('a mint order with a taken reference id must be refused with 409 for only that id, and its new reference ids must stay unknown', async () => {
  const { stage, assets, ids } = openOrder(2);
  const order = { name: 'again', assets, taken: [ids[1]!], fresh: [ids[0]!] };
  stage.responses.push(responseOf(409, conflict([ids[1]!])), responseOf(404, {}));
  await sendConflict(stage, order);
  expect(stage.differences.total).toBe(0);
  stage.responses.push(quotaResponse(), responseOf(404, {}));
  await sendConflict(stage, order);
  stage.responses.push(responseOf(409, conflict(ids)), responseOf(200, {}));
  await sendConflict(stage, order);
  expect(stage.differences.byKind().map(({ kind, count }) => [kind, count])).toEqual([
    ['answer', 2],
    ['uninvited', 1],
  ]);
});
