import { expect, it } from 'vitest';
import { DATA } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

it.each(['GET', 'POST', 'PUT', 'PATCH', 'OPTIONS'])(
  'a 404 at the erasure path answers %s, without CORS headers',
  async (method) => {
    const { url } = await openGateway();
    const answer = await fetch(url + DATA, { method, headers: { origin: 'https://game.test' } });
    expect(answer.status).toBe(404);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  },
);
