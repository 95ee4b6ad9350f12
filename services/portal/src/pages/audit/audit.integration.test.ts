import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PortalReads } from '../../reads/index.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { type OwnReads, openOwnReads } from '../../test/own-reads.ts';

/** Several queries of 2,000 entries. */
const ENTRIES = 9_000;

let own: OwnReads;
let portal: TestPortal;
/** Number of entries that each query returned. */
const queries: number[] = [];
const logged: string[] = [];
beforeAll(async () => {
  own = await openOwnReads();
  const { reads } = own;
  const audit: PortalReads['audit'] = async (...args) => {
    const entries = await reads.audit(...args);
    queries.push(entries.length);
    return entries;
  };
  const logger = createLogger({ service: 'portal', level: 'error' }, { write: (line: string) => logged.push(line) });
  portal = await openPortal({ reads: { ...reads, audit }, logger });
});
afterAll(async () => {
  await portal?.close();
  await own?.close();
});

/** A project with entries, `perTime` of them in each millisecond. */
async function openProject(entries: number, perTime: number) {
  const project = await portal.addProject('Game');
  await own.send(`INSERT INTO audit_log (project_id, happened_at, entry_id, kind, object, action, actor, detail)
    SELECT '${project.id}', fromUnixTimestamp64Milli(toInt64(${Date.now() - 60_000} - intDiv(number, ${perTime})), 'UTC'),
      concat('key:', toString(cityHash64(number)), ':1'), 'key', concat('o-', toString(number)), 'key.create', 'ada',
      repeat('x', 2000)
    FROM numbers(${entries})`);
  queries.length = 0;
  return { path: `/projects/${project.id}/audit`, browser: await portal.signIn({ project, role: 'owner' }) };
}

const objectsIn = (text: string) => [...text.matchAll(/"(o-\d+)"/g)].map(([, object]) => object!);

describe('the export of the audit', () => {
  it.each([7, ENTRIES])(
    'the file has each of 9,000 entries once, with %d at each time, in several queries',
    async (perTime) => {
      const { browser, path } = await openProject(ENTRIES, perTime);
      const { status, text } = await browser.get(`${path}?as=csv`);
      const objects = objectsIn(text);
      expect([status, text.split('\r\n').length]).toEqual([200, ENTRIES + 2]);
      expect([objects.length, new Set(objects).size]).toEqual([ENTRIES, ENTRIES]);
      expect(Math.max(...queries)).toBeLessThanOrEqual(2_000);
    },
  );

  it('the file breaks off when a later query fails, so that it is not taken for complete', async () => {
    const { browser, path } = await openProject(5_000, 7);
    const { audit } = portal.parts.reads;
    let calls = 0;
    Object.assign(portal.parts.reads, {
      audit: (...args: Parameters<typeof audit>) =>
        calls++ === 1 ? Promise.reject(new Error('connection lost')) : audit(...args),
    });
    await expect(browser.get(`${path}?as=csv`)).rejects.toThrow();
    Object.assign(portal.parts.reads, { audit });
    expect(calls).toBe(2);
    await until('it is logged', () => logged.some((line) => line.includes('connection lost')));
  });
});

it('the link to older entries leads through 300 entries of one millisecond', async () => {
  const { browser, path } = await openProject(300, 300);
  const seen: string[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const { text } = await browser.get(next);
    seen.push(...[...text.matchAll(/<code>(o-\d+)<\/code>/g)].map(([, object]) => object!));
    next = /href="([^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([seen.length, new Set(seen).size]).toEqual([300, 300]);
});
