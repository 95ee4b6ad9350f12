import { expect, it } from 'vitest';
import { requestAssets, sendConflict } from './requests.ts';
import { createQuotaResponse, createResponse, createTestStage } from './test-stage.ts';

const conflict = (values: readonly string[]) => ({ code: 'CONFLICT_ERROR', details: { id: 'reference_id', values } });
const bodyIds = (body: unknown) =>
  (body as { assets: { reference_id: string }[] }).assets.map(({ reference_id }) => reference_id);

function createRequest(count = 3) {
  const stage = createTestStage();
  const assets = Array.from({ length: count }, () => stage.assets.mintable('erc721'));
  const ids = assets.map(({ referenceId }) => referenceId);
  return { stage, assets, ids };
}

it('requestAssets records each asset once after a 202', async () => {
  const { stage, assets, ids } = createRequest();
  stage.responses.push(createQuotaResponse());
  await requestAssets(stage, assets);
  expect(stage.ledger.entries().map(({ asset, attemptsMin }) => [asset.referenceId, attemptsMin])).toEqual(
    ids.map((id) => [id, 1]),
  );
  expect(stage.differences.total).toBe(0);
});

it('after a lost response, requestAssets repeats the request without the assets that the 409 lists', async () => {
  const { stage, assets, ids } = createRequest();
  stage.responses.push(createResponse(409, conflict([ids[1]!]), { mayBeStored: true }), createQuotaResponse());
  await requestAssets(stage, assets);
  expect(bodyIds(stage.called[1]?.body)).toEqual([ids[0], ids[2]]);
  expect(stage.ledger.accepted).toBe(3);
  expect(stage.differences.total).toBe(0);
});

it('assets that are accepted after a lost response may have two attempts, because the first may have failed', async () => {
  const { stage, assets, ids } = createRequest();
  stage.responses.push(createResponse(409, conflict([ids[1]!]), { mayBeStored: true }), createQuotaResponse());
  await requestAssets(stage, assets);
  const attemptsMax = Object.fromEntries(
    stage.ledger.entries().map((entry) => [entry.asset.referenceId, entry.attemptsMax]),
  );
  expect(attemptsMax).toEqual({ [ids[0]!]: 2, [ids[1]!]: 1, [ids[2]!]: 2 });
});

it('requestAssets reports a 409 if no response was lost', async () => {
  const { stage, assets, ids } = createRequest();
  stage.responses.push(createResponse(409, conflict(ids)));
  await requestAssets(stage, assets);
  expect(stage.differences.byKind()).toMatchObject([{ kind: 'answer', count: 1 }]);
  expect(stage.ledger.entries()).toEqual([]);
});

it('requestAssets records assets as unacknowledged if no response arrives', async () => {
  const { stage, assets } = createRequest(1);
  stage.responses.push(createResponse(0, null, { status: null, mayBeStored: true }));
  await requestAssets(stage, assets);
  expect(stage.ledger.entries()).toMatchObject([{ attemptsMin: 0, attemptsMax: 1 }]);
  expect(stage.differences.total).toBe(0);
});

it('requestAssets reports quotas that differ between headers and body', async () => {
  const { stage, assets } = createRequest(1);
  stage.responses.push(createQuotaResponse({ json: { imx_mint_requests_limit: '7' } }));
  await requestAssets(stage, assets);
  expect(stage.differences.byKind()[0]?.first[0]).toContain('imx-mint-requests-limit is 2000 in the headers and 7');
});

it('sendConflict expects a 409 that lists exactly the taken ids, and expects new ids to remain unknown', async () => {
  const { stage, assets, ids } = createRequest(2);
  const request = { name: 'a conflict', assets, taken: [ids[1]!], fresh: [ids[0]!] };
  stage.responses.push(createResponse(409, conflict([ids[1]!])), createResponse(404, {}));
  await sendConflict(stage, request);
  expect(stage.differences.total).toBe(0);
  stage.responses.push(createQuotaResponse(), createResponse(404, {}));
  await sendConflict(stage, request);
  stage.responses.push(createResponse(409, conflict(ids)), createResponse(200, {}));
  await sendConflict(stage, request);
  expect(stage.differences.byKind().map(({ kind, count }) => [kind, count])).toEqual([
    ['answer', 2],
    ['uninvited', 1],
  ]);
});
