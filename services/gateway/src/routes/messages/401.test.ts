import { createKeyText, refreshKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, KEY_HEADER, message, openGateway } from '../../test/open-gateway.ts';

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

it('a 401 to a batch answers a malformed key, an unknown one and a secret one', async () => {
  const { post, secretKey, producer } = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const key of ['nonsense', unknown, secretKey]) {
    const answer = await post({ messages: [message()] }, { [KEY_HEADER]: key });
    expect(answer.status).toBe(401);
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: KEY_HEADER });
  }
  expect(producer.sent).toEqual([]);
});

it('a 401 to a batch answers a replaced key within a second of the refresh, while its successor gets 200', async () => {
  const { post, store } = await openGateway();
  expect((await post({ messages: [message()] })).status).toBe(200);
  const { key } = await refreshKey({ store, prefix: 'svcapik' }, owner);
  const ended = async () => (await post({ messages: [message()] })).status === 401;
  await until('the old key has ended', ended, 1000);
  expect((await post({ messages: [message()] }, { [KEY_HEADER]: key })).status).toBe(200);
});
