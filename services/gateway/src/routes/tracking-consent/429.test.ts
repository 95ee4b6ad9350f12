import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { putConsent, wanted } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

it('a 429 of the consent operations answers with Retry-After, before the body is read, while the bytes in flight are at their bound', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 });
  gateway.producer.mode = 'hold';
  const first = putConsent(gateway, wanted());
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  const answer = await putConsent(gateway, wanted());
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('1');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  gateway.producer.sent[0]!.done(null);
  expect((await first).status).toBe(204);
});
