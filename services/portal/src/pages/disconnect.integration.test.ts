import { randomUUID } from 'node:crypto';
import { createLogger } from '@playline/runtime';
import { createQueryRows, type QueryRows } from '@playline/stores';
import { testStores, until } from '@playline/testkit';
import { afterEach, expect, it } from 'vitest';
import { createPortalReads } from '../reads/index.ts';
import { openPortal, type TestPortal } from '../test/open-portal.ts';

const { url, user, password } = testStores().clickhouse;
/** Has the settings of the portal's account: queries end when the client disconnects and cannot change settings. */
const readOnlyUrl = new URL(url);
readOnlyUrl.searchParams.set('cancel_http_readonly_queries_on_client_close', '1');
readOnlyUrl.searchParams.set('readonly', '1');
const account = { url: readOnlyUrl.href, user, password, database: 'default' };
/** Runs for minutes, half a second per block. ClickHouse checks the connection between blocks. */
const SLOW_SQL = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';

let portal: TestPortal | undefined;
afterEach(() => portal?.close());

async function openSlow(deadlineMs: number) {
  const marker = randomUUID();
  const errors: unknown[] = [];
  const run = createQueryRows({ ...account, onFault: (error) => errors.push(error) }, { deadlineMs, isReadonly: true });
  const query: QueryRows = (_sql, options) => run(`${SLOW_SQL} /* ${marker} */`, options);
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => errors.push(line) });
  portal = await openPortal({ reads: createPortalReads(query), logger });
  const project = await portal.addProject('Game');
  const browser = await portal.signIn({ project, role: 'owner' });
  const projectPath = `/projects/${project.id}`;
  const environmentPath = `${projectPath}/environments/production`;
  return { portal, browser, projectPath, environmentPath, errors, running: () => countRunning(marker) };
}

async function countRunning(marker: string): Promise<number> {
  const operator = createQueryRows({ url, user, password, database: 'default' });
  // Excludes the query below, which also contains the marker.
  const sql = `SELECT count() FROM system.processes WHERE query LIKE '%numbers%${marker}%' AND query NOT LIKE '%processes%'`;
  for await (const [count] of operator(sql)) return Number(count);
  return 0;
}

it.each(['erasures', 'rejections', 'audit', 'project'])(
  'ClickHouse cancels the query of the %s page when the client disconnects',
  async (page) => {
    const { portal, browser, projectPath, environmentPath, errors, running } = await openSlow(60_000);
    const path = { audit: `${projectPath}/audit`, project: projectPath }[page] ?? `${environmentPath}/${page}`;
    const abort = new AbortController();
    const response = fetch(portal.origin + path, { headers: { cookie: browser.cookie }, signal: abort.signal });
    const expected = expect(response).rejects.toThrow();
    await until('the query is running', async () => (await running()) > 0);
    abort.abort();
    await expected;
    await until('the query has ended', async () => (await running()) === 0);
    expect(errors).toEqual([]);
  },
);

it('ClickHouse cancels a query at its deadline, and the page shows an error', async () => {
  const { browser, environmentPath, running } = await openSlow(1_000);
  const { status, text } = await browser.get(`${environmentPath}/erasures`);
  expect([status, text.includes('Not available')]).toEqual([500, true]);
  await until('the query has ended', async () => (await running()) === 0);
});
