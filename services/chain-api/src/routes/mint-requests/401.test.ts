import { describe, expect, it } from 'vitest';
import { MINTS, order, SECRET_KEY_HEADER } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('401', () => {
  it('answers a key that is malformed, and names its header', async () => {
    const api = await openChainApi();
    const headers = { 'content-type': 'application/json', [SECRET_KEY_HEADER]: 'hello' };
    const url = `${api.url}/v1/chains/demo-chain/collections${MINTS}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(order('a')) });
    expect(answer.status).toBe(401);
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: SECRET_KEY_HEADER });
  });
});
