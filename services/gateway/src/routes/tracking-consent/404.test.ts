import { expect, it } from 'vitest';
import { CONSENT } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

it.each(['POST', 'DELETE', 'PATCH'])('a 404 at the consent path answers %s', async (method) => {
  const { url } = await openGateway();
  const answer = await fetch(url + CONSENT, { method });
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
});
