import { expect, it } from 'vitest';
import { expectEnvelope, MESSAGES, openGateway } from '../../test/open-gateway.ts';

it.each(['GET', 'PUT', 'DELETE', 'PATCH'])(
  'a 404 at the ingest path answers %s on the path of the messages',
  async (method) => {
    const { url } = await openGateway();
    const answer = await fetch(url + MESSAGES, { method });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  },
);

it('a 404 at the ingest path answers any other path', async () => {
  const { url } = await openGateway();
  for (const path of ['/', '/v1', '/v2/audience/messages', `${MESSAGES}/x`])
    await expectEnvelope(await fetch(url + path, { method: 'POST' }), 'RESOURCE_NOT_FOUND');
});
