import { randomUUID } from 'node:crypto';
import { createLogger } from '@playline/runtime';
import { createQueryRows, type QueryRows } from '@playline/stores';
import { testStores, until } from '@playline/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createPortalReads } from '../reads/index.ts';
import { openPortal, type TestPortal } from '../test/open-portal.ts';

const { url, user, password } = testStores().clickhouse;
/** As the account of the portal has it: a question that is left ends, and may set nothing. */
const bound = new URL(url);
bound.searchParams.set('cancel_http_readonly_queries_on_client_close', '1');
bound.searchParams.set('readonly', '1');
const account = { url: bound.href, user, password, database: 'default' };
/** Takes minutes, half a second for each block. Between blocks the engine checks whether anybody waits. */
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';

let portal: TestPortal | undefined;
afterEach(() => portal?.close());

/** A portal each of whose questions takes long. */
async function openSlow(deadlineMs: number) {
  const mark = randomUUID();
  const faults: unknown[] = [];
  const ask = createQueryRows({ ...account, onFault: (fault) => faults.push(fault) }, { deadlineMs, isBound: true });
  const query: QueryRows = (_sql, options) => ask(`${SLOW} /* ${mark} */`, options);
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
  // Not this question itself, which has the mark in it as well.
  const sql = `SELECT count() FROM system.processes WHERE query LIKE '%numbers%${mark}%' AND query NOT LIKE '%processes%'`;
  for await (const [count] of operator(sql)) return Number(count);
  return 0;
}

describe('a question of a page', () => {
  it.each(['erasures', 'rejections', 'audit', 'the project'])(
    'about %s runs in ClickHouse no longer once the visitor has left',
    async (page) => {
      const { portal, browser, of, at, faults, running } = await openSlow(60_000);
      const path = { audit: `${of}/audit`, 'the project': of }[page] ?? `${at}/${page}`;
      const stop = new AbortController();
      const left = fetch(portal.origin + path, { headers: { cookie: browser.cookie }, signal: stop.signal });
      const expected = expect(left).rejects.toThrow();
      await until('it is asked', async () => (await running()) > 0);
      stop.abort();
      await expected;
      await until('it has ended', async () => (await running()) === 0);
      expect(faults).toEqual([]);
    },
  );

  it('runs no longer once its deadline is over, and the page says so', async () => {
    const { browser, at, running } = await openSlow(1_000);
    const { status, text } = await browser.get(`${at}/erasures`);
    expect([status, text.includes('Not at the moment')]).toEqual([500, true]);
    await until('it has ended', async () => (await running()) === 0);
  });
});
