import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../test/open-portal.ts';
import { openTestReads, type TestReads } from '../test/test-reads.ts';

/** Enough rows to require several queries, which return 2,000 rows each. */
const ROWS = 5_000;
/** Enough rows to exceed the buffers between the portal and a client that stops reading. */
const ABORTED_ROWS = 25_000;

let database: TestReads;
let portal: TestPortal;
/** The number of rows that each query returned. */
const queries: number[] = [];
const logged: string[] = [];
beforeAll(async () => {
  database = await openTestReads();
  const { messages, audit } = database.reads;
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => logged.push(line) });
  const reads: typeof database.reads = {
    ...database.reads,
    messages: async (...args) => {
      const page = await messages(...args);
      queries.push(page.lines.length);
      return page;
    },
    audit: async (...args) => {
      const entries = await audit(...args);
      queries.push(entries.length);
      return entries;
    },
  };
  portal = await openPortal({ reads, logger });
});
afterAll(async () => {
  await portal?.close();
  await database?.close();
});

/** Inserts `perTimestamp` rows per timestamp and returns the path of the page that shows them. */
const SOURCES = {
  messages: async (projectId: string, rows: number, perTimestamp: number) => {
    await database.send(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, surface, user_id)
      SELECT '${projectId}-production', 'track', 'jump',
        toDateTime64('2026-11-01 00:00:00', 3, 'UTC') - toIntervalMillisecond(100000 * intDiv(number, ${perTimestamp})),
        now64(3), toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0'))), 'web', repeat('x', 100)
      FROM numbers(${rows})`);
    return `/projects/${projectId}/environments/production/explore?since=2026-10-01T00:00&until=2026-11-01T00:01`;
  },
  audit: async (projectId: string, rows: number, perTimestamp: number) => {
    await database.send(`INSERT INTO audit_log (project_id, happened_at, entry_id, kind, object, action, actor, detail)
      SELECT '${projectId}', fromUnixTimestamp64Milli(toInt64(${Date.now() - 60_000} - intDiv(number, ${perTimestamp})), 'UTC'),
        concat('key:', toString(cityHash64(number)), ':1'), 'key', concat('o-', toString(number)), 'key.create', 'ada',
        repeat('x', 2000)
      FROM numbers(${rows})`);
    return `/projects/${projectId}/audit?`;
  },
};

async function openProject(source: keyof typeof SOURCES, rows: number, perTimestamp: number) {
  const project = await portal.addProject('Game');
  const path = await SOURCES[source](project.id, rows, perTimestamp);
  queries.length = 0;
  return { path, browser: await portal.signIn({ project, role: 'owner' }) };
}

const readIds = (text: string) => [...text.matchAll(/"(o-\d+|00000000-0000-4000-8000-\d{12})"/g)].map(([, id]) => id);

it.each([
  ['messages', 1],
  ['messages', 3_000],
  ['audit', 7],
  ['audit', ROWS],
] as const)('the %s export contains each of 5,000 rows once (rows per timestamp: %d)', async (source, perTimestamp) => {
  const { browser, path } = await openProject(source, ROWS, perTimestamp);
  const { status, text } = await browser.get(`${path}&as=csv`);
  const ids = readIds(text);
  // A row of the audit log contains the name and the id of its object, which are equal here.
  const idsPerRow = source === 'audit' ? 2 : 1;
  expect([status, ids.length, new Set(ids).size]).toEqual([200, ROWS * idsPerRow, ROWS]);
  expect(Math.max(...queries)).toBeLessThanOrEqual(2_000);
  expect(logged).toEqual([]);
});

it('the portal stops querying when the client that downloads an export disconnects', async () => {
  const { browser, path } = await openProject('messages', ABORTED_ROWS, 1);
  const abort = new AbortController();
  const options = { headers: { cookie: browser.cookie }, signal: abort.signal };
  const response = await fetch(`${portal.origin}${path}&as=csv`, options);
  await response.body!.getReader().read();
  abort.abort();
  let before = -1;
  await until('the queries stop', () => {
    const isStopped = before === queries.length;
    before = queries.length;
    return isStopped;
  });
  expect([queries.length < ABORTED_ROWS / 2_000, logged]).toEqual([true, []]);
});

it('the portal aborts the download of an export if a later query fails', async () => {
  const { browser, path } = await openProject('audit', 5_000, 7);
  const { audit } = portal.parts.reads;
  let calls = 0;
  Object.assign(portal.parts.reads, {
    audit: (...args: Parameters<typeof audit>) =>
      calls++ === 1 ? Promise.reject(new Error('connection lost')) : audit(...args),
  });
  await expect(browser.get(`${path}&as=csv`)).rejects.toThrow();
  Object.assign(portal.parts.reads, { audit });
  expect(calls).toBe(2);
  await until('the error is logged', () => logged.some((line) => line.includes('connection lost')));
});
