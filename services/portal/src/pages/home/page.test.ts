import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';

const usage = createMemoryKeyUsage();
const portal = usePortal({ usage });

it('the home page shows the hourly message count instead of the rate if there are few messages', async () => {
  const project = await portal.addProject('Sky');
  const minuteAt = Math.floor(Date.now() / 60_000) * 60_000 - 20 * 60_000;
  const environments = [{ environmentId: project.environments[0]!.id, accepted: 3, rejected: 1 }];
  await usage.add({ minuteAt, keys: [], environments });
  const { text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
  expect(text).toContain('3 in the last hour, 25.0\u00a0% rejected');
  expect(text).toContain('no events in the last hour');
  expect(text).not.toContain('events/s');
});

it('the home page lists projects even if the counters cannot be read', async () => {
  const project = await portal.addProject('Sea');
  const analyst = await portal.signIn({ project, role: 'analyst' });
  Object.assign(usage, { readEnvironments: () => Promise.reject(new Error('connection lost')) });
  const { status, text } = await analyst.get('/');
  expect([status, text.includes('Sea'), text.split('not available').length]).toEqual([200, true, 3]);
});
