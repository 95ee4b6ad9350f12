import { isPlaceholder } from '@playline/people';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { getConsent, putConsent, wanted } from '../../test/audience-calls.ts';
import { openGateway } from '../../test/open-gateway.ts';

it('a 200 to a consent read answers not_set for an identity that has chosen nothing', async () => {
  const gateway = await openGateway();
  const answer = await getConsent(gateway);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  expect(await answer.json()).toEqual({ status: 'not_set' });
});

it.each(['none', 'anonymous', 'full'])(
  'a 200 to a consent read answers %s after it was chosen, whatever was chosen before',
  async (status) => {
    const gateway = await openGateway();
    for (const chosen of ['full', 'none', status]) await putConsent(gateway, wanted({ status: chosen }));
    expect(await (await getConsent(gateway)).json()).toEqual({ status });
  },
);

it('a 200 to a consent read answers for a percent-encoded id in any script, and for no other id', async () => {
  const gateway = await openGateway();
  const id = fc.string({ unit: codePoint, minLength: 1, maxLength: 60 }).filter((text) => !isPlaceholder(text));
  const property = fc.asyncProperty(
    fc.uniqueArray(id, { minLength: 2, maxLength: 2, selector: (text) => text.trim() }),
    async ([own, other]) => {
      expect((await putConsent(gateway, wanted({ anonymousId: own }))).status).toBe(204);
      const read = async (text: string) =>
        await (await getConsent(gateway, `?anonymousId=${encodeURIComponent(text)}`)).json();
      expect(await read(own!)).toEqual({ status: 'full' });
      await putConsent(gateway, wanted({ anonymousId: other, status: 'none' }));
      expect(await read(own!)).toEqual({ status: 'full' });
    },
  );
  await fc.assert(property, { numRuns: 30 });
});

it('a 200 to a consent read treats an id with white space around it as the same id', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted({ anonymousId: '  visitor-1 ' }));
  expect(await (await getConsent(gateway, '?anonymousId=visitor-1+')).json()).toEqual({ status: 'full' });
});

it('a 200 to a consent read answers not_set for a placeholder, although an id beside it has a consent', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted());
  expect(await (await getConsent(gateway, '?anonymousId=undefined')).json()).toEqual({ status: 'not_set' });
});

it('a 200 to a consent read keeps environments apart', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted());
  const key = gateway.keyer('other-test', 'anonymous', 'visitor-1');
  expect(await gateway.audience.people.consents.read('other-test', key)).toBeNull();
});
