import { createMetrics } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import { expect, it, onTestFinished } from 'vitest';
import { measureQueries } from './metrics.ts';
import { openPortal } from './test/open-portal.ts';
import { addPerson, PASSWORD } from './test/people.ts';

it('portal metrics count requests by the path of the page without its parameters, and sign-ins by outcome', async () => {
  const metrics = createMetrics('portal');
  const portal = await openPortal({ metrics });
  onTestFinished(() => portal.close());
  await addPerson(portal, 'ada', {});
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login: 'ada', password: 'a wrong password' });
  await browser.submit('/sign-in', 'password', { login: 'ada', password: PASSWORD });
  await browser.get('/projects/a-secret-name');
  const text = await metrics.text();
  expect(text).toContain(
    'playline_http_request_duration_seconds_count{service="portal",route="/projects/:project",method="GET",status="404"} 1',
  );
  expect(text).not.toContain('a-secret-name');
  expect(text).toContain('playline_portal_actions_total{action="session.refuse",service="portal"} 1');
  expect(text).toContain('playline_portal_actions_total{action="session.create",service="portal"} 1');
});

it('portal metrics distinguish completed, failed and cancelled queries', async () => {
  const metrics = createMetrics('portal');
  const abort = new AbortController();
  const query: QueryRows = async function* (sql) {
    yield [1];
    if (sql === 'abort') abort.abort();
    if (sql !== 'complete') throw new Error(sql);
  };
  const measured = measureQueries(metrics, query);
  const read = async (sql: string) => {
    for await (const _ of measured(sql, { signal: abort.signal })) if (sql === 'stop') return;
  };
  await read('complete');
  await read('stop');
  await expect(read('fail')).rejects.toThrow('fail');
  await expect(read('abort')).rejects.toThrow('abort');
  const text = await metrics.text();
  const count = (outcome: string) =>
    Number(text.match(new RegExp(`_count\\{service="portal",outcome="${outcome}"\\} (\\d+)`))?.[1]);
  expect(['completed', 'failed', 'cancelled'].map(count)).toEqual([1, 1, 2]);
});
