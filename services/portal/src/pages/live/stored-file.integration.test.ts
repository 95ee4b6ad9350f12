import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PortalReads } from '../../reads/index.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { type OwnReads, openOwnReads } from '../../test/own-reads.ts';

/** Several queries of 2,000 messages. */
const MESSAGES = 9_000;
/** More than fits between the portal and a client that does not read. */
const MESSAGES_TO_LEAVE = 25_000;
const START = '2026-10-01T00:00';

let own: OwnReads;
let portal: TestPortal;
/** Number of messages that each query returned. */
const queries: number[] = [];
const logged: string[] = [];
beforeAll(async () => {
  own = await openOwnReads();
  const { reads } = own;
  const messages: PortalReads['messages'] = async (...args) => {
    const page = await reads.messages(...args);
    queries.push(page.messages.length);
    return page;
  };
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => logged.push(line) });
  portal = await openPortal({ reads: { ...reads, messages }, logger });
});
afterAll(async () => {
  await portal?.close();
  await own?.close();
});

/** A project with messages of a month at most, `perTime` of them at each time, 100 s apart. */
async function openProject(messages: number, perTime: number) {
  const project = await portal.addProject('Game');
  await own.send(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, surface, user_id)
    SELECT '${project.id}-production', 'track', 'jump',
      toDateTime64('2026-11-01 00:00:00', 3, 'UTC') - toIntervalMillisecond(100000 * intDiv(number, ${perTime})),
      now64(3), toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0'))), 'web', repeat('x', 100)
    FROM numbers(${messages})`);
  queries.length = 0;
  const path = `/projects/${project.id}/environments/production/live?since=${START}&until=2026-11-01T00:01&as=csv`;
  return { path, browser: await portal.signIn({ project, role: 'developer' }) };
}

describe('the CSV file of stored messages', () => {
  it.each([1, 3_000])(
    'the file has each of 9,000 messages once, with %d at each time, in several queries',
    async (perTime) => {
      const { browser, path } = await openProject(MESSAGES, perTime);
      const { status, text } = await browser.get(path);
      const ids = [...text.matchAll(/"(00000000-0000-4000-8000-\d{12})"/g)].map(([, id]) => id);
      expect([status, ids.length, new Set(ids).size]).toEqual([200, MESSAGES, MESSAGES]);
      expect(Math.max(...queries)).toBeLessThanOrEqual(2_000);
      expect(logged).toEqual([]);
    },
  );

  it('the portal stops its queries when the client of a file disconnects', async () => {
    const { browser, path } = await openProject(MESSAGES_TO_LEAVE, 1);
    const abort = new AbortController();
    const headers = { cookie: browser.cookie };
    const response = await fetch(portal.origin + path, { headers, signal: abort.signal });
    await response.body!.getReader().read();
    abort.abort();
    let before = -1;
    await until('the queries stop', () => {
      const isQuiet = before === queries.length;
      before = queries.length;
      return isQuiet;
    });
    expect([queries.length < MESSAGES_TO_LEAVE / 2_000, logged]).toEqual([true, []]);
  });
});
