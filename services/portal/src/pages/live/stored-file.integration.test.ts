import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PortalReads } from '../../reads/index.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { type OwnReads, openOwnReads } from '../../test/own-reads.ts';

/** Several questions of 2,000 messages. */
const MESSAGES = 9_000;
/** More than fits between the portal and a client that does not read. */
const MESSAGES_TO_LEAVE = 25_000;
const START = '2026-10-01T00:00';

let own: OwnReads;
let portal: TestPortal;
/** Messages of each question that was asked. */
const asked: number[] = [];
/** What is told to the log. */
const lines: string[] = [];
beforeAll(async () => {
  own = await openOwnReads();
  const { reads } = own;
  const messages: PortalReads['messages'] = async (...question) => {
    const page = await reads.messages(...question);
    asked.push(page.messages.length);
    return page;
  };
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => lines.push(line) });
  portal = await openPortal({ reads: { ...reads, messages }, searchMessages: async () => [], logger });
});
afterAll(async () => {
  await portal?.close();
  await own?.close();
});

/** A project with messages of a month at most, so many of them of one moment, and 100 s from one moment to the next. */
async function openProject(messages: number, ofOneMoment: number) {
  const project = await portal.addProject('Game');
  await own.send(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, surface, user_id)
    SELECT '${project.id}-production', 'track', 'jump',
      toDateTime64('2026-11-01 00:00:00', 3, 'UTC') - toIntervalMillisecond(100000 * intDiv(number, ${ofOneMoment})),
      now64(3), toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0'))), 'web', repeat('x', 100)
    FROM numbers(${messages})`);
  asked.length = 0;
  const path = `/projects/${project.id}/environments/production/live?since=${START}&until=2026-11-01T00:01&as=csv`;
  return { path, browser: await portal.signIn({ project, role: 'developer' }) };
}

describe('a search of messages as a file', () => {
  it.each([1, 3_000])('has each of 9,000 messages once, %d of one moment, a part at a time', async (ofOneMoment) => {
    const { browser, path } = await openProject(MESSAGES, ofOneMoment);
    const { status, text } = await browser.get(path);
    const ids = [...text.matchAll(/"(00000000-0000-4000-8000-\d{12})"/g)].map(([, id]) => id);
    expect([status, ids.length, new Set(ids).size]).toEqual([200, MESSAGES, MESSAGES]);
    expect(Math.max(...asked)).toBeLessThanOrEqual(2_000);
    expect(lines).toEqual([]);
  });

  it('is read no further once nobody takes it any more', async () => {
    const { browser, path } = await openProject(MESSAGES_TO_LEAVE, 1);
    const stop = new AbortController();
    const headers = { cookie: browser.cookie };
    const answer = await fetch(portal.origin + path, { headers, signal: stop.signal });
    await answer.body!.getReader().read();
    stop.abort();
    let before = -1;
    await until('nothing more is asked', () => {
      const isQuiet = before === asked.length;
      before = asked.length;
      return isQuiet;
    });
    expect([asked.length < MESSAGES_TO_LEAVE / 2_000, lines]).toEqual([true, []]);
  });
});
