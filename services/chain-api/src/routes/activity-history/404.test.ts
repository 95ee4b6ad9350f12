import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('404', () => {
  it('answers a chain that is not served, whatever else is wrong, and counts the call', async () => {
    const answer = await (await openChainApi()).get('/none/activity-history?page_size=0');
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    expect(answer.headers.get('ratelimit')).toContain('r=1499;');
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('answers %s, and sends no header of CORS', async (method) => {
    const { url } = await openChainApi();
    const answer = await fetch(`${url}/v1/chains/${CHAIN.name}/activity-history`, { method });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it.each(['/activity-history', '/demo-chain/activity-history/', '/demo-chain/Activity-History'])(
    'answers the path %s below the chains',
    async (path) => expect((await (await openChainApi()).get(path)).status).toBe(404),
  );
});
