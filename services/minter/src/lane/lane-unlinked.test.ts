import { expect, it } from 'vitest';
import { createWorld, DEPTH } from '../test/lane-world.ts';

it('a lane ends the assets of a project that has unlinked the collection, except those in a signed transaction', async () => {
  const { takeOver, request, mine, unlinked, last, tokens } = createWorld();
  const lane = await takeOver();
  const linked = request('a', { tokenId: '7' });
  await lane.take([linked]);
  await lane.turn();
  expect(last('a')).toMatchObject({ stage: 'logged' });
  await lane.take([request('b', { tokenId: '8' })]);
  unlinked.add(linked.request.projectId);
  await lane.endUnlinked();
  expect(last('b')).toMatchObject({ status: 'failed', error: 'The project has unlinked the collection.' });
  expect(last('a')).toMatchObject({ status: 'pending' });
  mine(DEPTH + 1);
  await lane.turn();
  expect(last('a')).toMatchObject({ status: 'succeeded' });
  expect(tokens()).toBe(1);
});

it('a reference id of one project does not keep another project from minting under the same id', async () => {
  const { takeOver, request } = createWorld();
  const lane = await takeOver();
  const [linked, moved] = [request('a', { tokenId: '7' }), request('a', { tokenId: '8', attempt: 2 })];
  const accepted = await lane.take([linked, { ...moved, request: { ...moved.request, projectId: 'theirs' } }]);
  expect(accepted).toMatchObject({ dropped: 0, states: [{ tokenId: '7' }, { tokenId: '8', projectId: 'theirs' }] });
});

it('states of a lane do not contain the metadata of requests', async () => {
  const { takeOver, request, log } = createWorld();
  const lane = await takeOver();
  const large = request('a', { tokenId: '7' });
  await lane.take([{ ...large, request: { ...large.request, metadata: '{"name":"Sword"}' } }]);
  expect(JSON.stringify([log.states, lane.ledger.pending])).not.toContain('Sword');
});
