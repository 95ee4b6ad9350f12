import { createKeyText, refreshKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { erase, SECRET_HEADER } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'secret' } as const;

it('a 401 to an erasure request answers a malformed key, an unknown one and a publishable one', async () => {
  const gateway = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const secretKey of ['nonsense', unknown, gateway.key, `${gateway.secretKey}, ${gateway.secretKey}`]) {
    const answer = await erase({ ...gateway, secretKey });
    expect(answer.status).toBe(401);
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: SECRET_HEADER });
  }
  expect(gateway.producer.sent).toEqual([]);
});

it('a 401 to an erasure request comes before any check of the identifiers', async () => {
  const gateway = await openGateway();
  expect((await erase({ ...gateway, secretKey: 'nonsense' }, '')).status).toBe(401);
});

it('a 401 to an erasure request answers a replaced key within a second of the refresh, while its successor gets 202', async () => {
  const gateway = await openGateway();
  expect((await erase(gateway)).status).toBe(202);
  const { key: successor } = await refreshKey({ store: gateway.store, prefix: 'svcapik' }, owner);
  await until('the old key has ended', async () => (await erase(gateway)).status === 401, 1000);
  expect((await erase({ ...gateway, secretKey: successor })).status).toBe(202);
});
