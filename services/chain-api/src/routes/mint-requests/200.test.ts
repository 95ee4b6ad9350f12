import { type MintState, toRequestedState } from '@playline/mints';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { MINTS, OWNER, order } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

interface ShownPage {
  readonly result: readonly { readonly reference_id: string }[];
  readonly page: { readonly next_cursor: string };
}

it('an accepted mint request is found immediately by GET', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: order('sword 1/ä') });
  const found = await api.call(`${MINTS}/${encodeURIComponent('sword 1/ä')}`);
  expect(found.status).toBe(200);
  expect(await found.json()).toMatchObject({
    result: [{ reference_id: 'sword 1/ä', status: 'pending', owner_address: OWNER.toLowerCase() }],
    page: { previous_cursor: expect.any(String), next_cursor: expect.any(String) },
  });
  const unknown = await api.call(`${MINTS}/nothing`);
  expect(unknown.status).toBe(404);
  await expectEnvelope(unknown, 'RESOURCE_NOT_FOUND');
});

it('a reader of the list gets each mint request once, also those stored after a later one', async () => {
  const api = await openChainApi({ MINTS_LISTED_AFTER_MS: 1500 });
  const body = { assets: [{ reference_id: 'template', owner_address: `0x${'ab'.repeat(20)}` }] };
  await api.call(MINTS, { body });
  const template = toRequestedState(api.minting.requests[0]!);
  const requestedAt = Date.now();
  const stateOf = (referenceId: string, at: number): MintState => ({
    ...template,
    referenceId,
    attemptId: String(at).repeat(32),
    requestedAt: requestedAt + at,
    changedAt: requestedAt + at,
  });
  const seen: string[] = [];
  let cursor = '';
  const poll = async () => {
    const answer = await api.call(`${MINTS}?page_size=2${cursor === '' ? '' : `&page_cursor=${cursor}`}`);
    const { result, page } = (await answer.json()) as ShownPage;
    seen.push(...result.map(({ reference_id }) => reference_id));
    cursor = page.next_cursor;
  };
  // The last request is in the tables first; the two before it are not yet.
  api.minting.reader.put(stateOf('third', 3));
  await poll();
  api.minting.reader.put(stateOf('second', 2));
  await poll();
  api.minting.reader.put(stateOf('first', 1));
  await until('all are seen', async () => {
    await poll();
    return seen.includes('third');
  });
  await poll();
  expect(seen).toEqual(['first', 'second', 'third']);
});
