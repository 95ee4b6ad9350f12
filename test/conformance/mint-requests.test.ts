// Specification, table "Endpoints that require the secret API key", and part F, on mint requests: the log, the tables and Redis.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { START_MAX_MS } from './gateway.ts';
import { assetOf, type MintingSystem, OWNER, startMinting } from './minting.ts';

let system: MintingSystem;
beforeAll(async () => {
  system = await startMinting();
}, START_MAX_MS);
afterAll(() => system.close());

interface Shown {
  readonly result: readonly Readonly<Record<string, unknown>>[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

async function readShown(path: string): Promise<Shown> {
  const answer = await system.call(path);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Shown;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describe('a mint request', () => {
  it('is accepted, found at once, on the log, in the list, and shows what the minter says: every member', async () => {
    const mints = `/${await system.link()}/nfts/mint-requests`;
    const asset = assetOf({ token_id: '7', amount: '2', metadata: { name: 'Sword' } });
    expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(202);
    const shown = {
      chain: { id: 'eip155:31337', name: 'demo-chain' },
      collection_address: mints.split('/')[1],
      reference_id: asset.reference_id,
      owner_address: OWNER,
      status: 'pending',
      token_id: '7',
      amount: '2',
      activity_id: null,
      transaction_hash: null,
      error: null,
      created_at: expect.stringMatching(TIME),
      updated_at: expect.stringMatching(TIME),
    };
    const one = `${mints}/${asset.reference_id}`;
    expect((await readShown(one)).result).toEqual([shown]);
    await until('it is in the list', async () => (await readShown(mints)).result.length === 1);
    expect((await readShown(mints)).result).toEqual([shown]);
    const request = (await system.requests()).find(({ referenceId }) => referenceId === asset.reference_id)!;
    const activityId = Buffer.from('018f3a5c7c1e7d2a9b1e3f4a5b6c7d8e', 'hex');
    await system.say(request, { revision: 1 });
    await system.say(request, {
      ...{ revision: 2, status: 'succeeded', stage: 'settled', nonce: 3, activityId },
      transactionHash: Buffer.alloc(32, 0xcd),
    });
    const succeeded = {
      ...shown,
      ...{ status: 'succeeded', activity_id: '018f3a5c-7c1e-7d2a-9b1e-3f4a5b6c7d8e' },
      transaction_hash: `0x${'cd'.repeat(32)}`,
    };
    const isDone = async (path: string) => (await readShown(path)).result[0]?.status === 'succeeded';
    await until('it shows what the minter said', () => isDone(one));
    await until('so does the list', () => isDone(mints));
    expect((await readShown(one)).result).toEqual([succeeded]);
    expect((await readShown(mints)).result).toEqual([succeeded]);
  });

  it('that failed tells why, and its reference id may be used again: then that attempt is the one that is shown', async () => {
    const mints = `/${await system.link()}/nfts/mint-requests`;
    const asset = assetOf();
    await system.call(mints, { body: { assets: [asset] } });
    const [request] = (await system.requests()).filter(({ referenceId }) => referenceId === asset.reference_id);
    expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(409);
    await system.say(request!, { revision: 1, status: 'failed', stage: 'settled', error: 'token already minted' });
    const one = `${mints}/${asset.reference_id}`;
    await until('it failed', async () => (await readShown(one)).result[0]?.status === 'failed');
    expect((await readShown(one)).result[0]).toMatchObject({ error: { message: 'token already minted' } });
    expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(202);
    expect((await readShown(one)).result[0]).toMatchObject({ status: 'pending', error: null });
    await until('the list shows the second alone', async () => {
      const { result } = await readShown(mints);
      return result.length === 1 && result[0]?.status === 'pending';
    });
    await until('both attempts are kept', async () => {
      const rows = await system.rows<{ n: string }>(
        `SELECT uniqExact(attempt_id) AS n FROM mint_requests WHERE reference_id = '${asset.reference_id}'`,
      );
      return rows[0]?.n === '2';
    });
  });
});
