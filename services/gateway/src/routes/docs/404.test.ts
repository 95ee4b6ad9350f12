import { describe, expect, it } from 'vitest';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

describe('404', () => {
  it.each([
    '/docs/',
    '/docs/errors',
    '/docs/errors/NO_SUCH_CODE',
    '/docs/errors/validation_error',
    '/docs/%2e%2e%2fapp.ts',
  ])('answers %s with the envelope', async (path) => {
    const { url } = await openGateway();
    const answer = await fetch(url + path);
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  });

  it('answers any other method than GET and HEAD on a document', async () => {
    const { url } = await openGateway();
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      await expectEnvelope(await fetch(`${url}/openapi.json`, { method }), 'RESOURCE_NOT_FOUND');
  });
});
