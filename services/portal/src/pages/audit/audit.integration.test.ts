import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PortalReads } from '../../reads/index.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { type OwnReads, openOwnReads } from '../../test/own-reads.ts';

/** Several questions of 2,000 entries. */
const ENTRIES = 9_000;
/** More than fits between the portal and a client that does not read. */
const ENTRIES_TO_LEAVE = 25_000;

let own: OwnReads;
let portal: TestPortal;
/** Entries of each question that was asked. */
const asked: number[] = [];
/** What is told to the log. */
const lines: string[] = [];
beforeAll(async () => {
  own = await openOwnReads();
  const { reads } = own;
  const audit: PortalReads['audit'] = async (...question) => {
    const entries = await reads.audit(...question);
    asked.push(entries.length);
    return entries;
  };
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => lines.push(line) });
  portal = await openPortal({ reads: { ...reads, audit }, logger });
});
afterAll(async () => {
  await portal?.close();
  await own?.close();
});

/** A project with entries of which so many were made in each millisecond. */
async function openProject(entries: number, ofOneMoment: number) {
  const project = await portal.addProject('Game');
  await own.send(`INSERT INTO audit_log (project_id, happened_at, entry_id, kind, object, action, actor, detail)
    SELECT '${project.id}', fromUnixTimestamp64Milli(toInt64(${Date.now() - 60_000} - intDiv(number, ${ofOneMoment})), 'UTC'),
      concat('key:', toString(cityHash64(number)), ':1'), 'key', concat('o-', toString(number)), 'key.create', 'ada',
      repeat('x', 2000)
    FROM numbers(${entries})`);
  asked.length = 0;
  return { path: `/projects/${project.id}/audit`, browser: await portal.signIn({ project, role: 'owner' }) };
}

const objectsIn = (text: string) => [...text.matchAll(/"(o-\d+)"/g)].map(([, object]) => object!);

describe('the export of the audit', () => {
  it.each([7, ENTRIES])('has all of 9,000 entries once, %d of them of one moment, a part at a time', async (ofOne) => {
    const { browser, path } = await openProject(ENTRIES, ofOne);
    const { status, text } = await browser.get(`${path}?as=csv`);
    const objects = objectsIn(text);
    expect([status, text.split('\r\n').length]).toEqual([200, ENTRIES + 2]);
    expect([objects.length, new Set(objects).size]).toEqual([ENTRIES, ENTRIES]);
    expect(Math.max(...asked)).toBeLessThanOrEqual(2_000);
  });

  it('reads no further once nobody takes it any more', async () => {
    const { browser, path } = await openProject(ENTRIES_TO_LEAVE, 7);
    const stop = new AbortController();
    const headers = { cookie: browser.cookie };
    const answer = await fetch(`${portal.origin}${path}?as=csv`, { headers, signal: stop.signal });
    await answer.body!.getReader().read();
    stop.abort();
    let before = -1;
    await until('nothing more is asked', () => {
      const isQuiet = before === asked.length;
      before = asked.length;
      return isQuiet;
    });
    expect([asked.length < ENTRIES_TO_LEAVE / 2_000, lines]).toEqual([true, []]);
  });

  it('breaks off where the store fails in its midst, so that nobody takes it for whole', async () => {
    const { browser, path } = await openProject(5_000, 7);
    const { audit } = portal.parts.reads;
    let questions = 0;
    Object.assign(portal.parts.reads, {
      audit: (...question: Parameters<typeof audit>) =>
        questions++ === 1 ? Promise.reject(new Error('away')) : audit(...question),
    });
    await expect(browser.get(`${path}?as=csv`)).rejects.toThrow();
    Object.assign(portal.parts.reads, { audit });
    expect(questions).toBe(2);
    await until('it is told to the log', () => lines.some((line) => line.includes('away')));
  });
});

it('Older leads through 300 entries of one millisecond, each shown once', async () => {
  const { browser, path } = await openProject(300, 300);
  const seen: string[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const { text } = await browser.get(next);
    seen.push(...[...text.matchAll(/<code>(o-\d+)<\/code>/g)].map(([, object]) => object!));
    next = /href="([^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([seen.length, new Set(seen).size]).toEqual([300, 300]);
});
