import { randomUUID } from 'node:crypto';
import { createLogger } from '@playline/runtime';
import { createQueryRows, type QueryRows } from '@playline/stores';
import { testStores, until } from '@playline/testkit';
import { afterEach, expect, it } from 'vitest';
import { createPortalReads } from '../reads/index.ts';
import { openPortal, type TestPortal } from '../test/open-portal.ts';

const { url, user, password } = testStores().clickhouse;
/** The settings of the portal's account: a query ends with its connection, and can change no setting. */
const limited = new URL(url);
limited.searchParams.set('cancel_http_readonly_queries_on_client_close', '1');
limited.searchParams.set('readonly', '1');
const account = { url: limited.href, user, password, database: 'default' };
/** Takes minutes, half a second for each block. ClickHouse checks the connection between blocks. */
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';

let portal: TestPortal | undefined;
afterEach(() => portal?.close());

async function openSlow(deadlineMs: number) {
  const mark = randomUUID();
  const faults: unknown[] = [];
  const slow = createQueryRows({ ...account, onFault: (fault) => faults.push(fault) }, { deadlineMs, isBound: true });
  const query: QueryRows = (_sql, options) => slow(`${SLOW} /* ${mark} */`, options);
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => faults.push(line) });
  portal = await openPortal({ reads: createPortalReads(query), logger });
  const project = await portal.addProject('Game');
  const browser = await portal.signIn({ project, role: 'owner' });
  const of = `/projects/${project.id}`;
  const at = `${of}/environments/production`;
  return { portal, browser, of, at, faults, running: () => countRunning(mark) };
}

async function countRunning(mark: string): Promise<number> {
  const operator = createQueryRows({ url, user, password, database: 'default' });
  // Excludes this query, which contains the mark too.
  const sql = `SELECT count() FROM system.processes WHERE query LIKE '%numbers%${mark}%' AND query NOT LIKE '%processes%'`;
  for await (const [count] of operator(sql)) return Number(count);
  return 0;
}

it.each(['erasures', 'rejections', 'audit', 'the project'])(
  'a query of %s ends in ClickHouse when the client disconnects',
  async (page) => {
    const { portal, browser, of, at, faults, running } = await openSlow(60_000);
    const path = { audit: `${of}/audit`, 'the project': of }[page] ?? `${at}/${page}`;
    const abort = new AbortController();
    const response = fetch(portal.origin + path, { headers: { cookie: browser.cookie }, signal: abort.signal });
    const expected = expect(response).rejects.toThrow();
    await until('it runs', async () => (await running()) > 0);
    abort.abort();
    await expected;
    await until('it has ended', async () => (await running()) === 0);
    expect(faults).toEqual([]);
  },
);

it('a query ends in ClickHouse at its deadline, and the page reports it', async () => {
  const { browser, at, running } = await openSlow(1_000);
  const { status, text } = await browser.get(`${at}/erasures`);
  expect([status, text.includes('Not available')]).toEqual([500, true]);
  await until('it has ended', async () => (await running()) === 0);
});
