import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RejectionCount } from '../../reads/index.ts';
import { createMemoryReads, type MemoryRows } from '../../test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

const SCRIPT = '<script>alert(1)</script>';
const TRACE = 'ab'.repeat(16);
const countOf = (over: Partial<RejectionCount> = {}): RejectionCount => ({
  code: 'INVALID_ENUM',
  field: 'surface',
  surface: 'web',
  library: 'playline-web',
  libraryVersion: '1.2.3',
  errors: 7,
  lastMs: Date.now() - 1000,
  lastTraceId: TRACE,
  ...over,
});

let portal: TestPortal;
/** By environment, filled when the environments are known. */
const rows = {
  rejections: {} as Record<string, RejectionCount[]>,
  steps: {} as NonNullable<MemoryRows['steps']> & Record<string, unknown>,
  traces: {} as Record<string, Record<string, never[]>>,
};
beforeAll(async () => {
  portal = await openPortal({ reads: createMemoryReads(rows) });
});
afterAll(() => portal.close());

async function openProject(role: 'owner' | 'analyst' = 'analyst') {
  const project = await portal.addProject('Game');
  const [environment] = project.environments.filter(({ name }) => name === 'development');
  const path = `/projects/${project.id}/environments/development/rejections`;
  return { project, environment: environment!, path, browser: await portal.signIn({ project, role }) };
}

describe('the page of rejections', () => {
  it('shows what was refused by code, field and client, and over time as bars', async () => {
    const { browser, environment, path } = await openProject();
    rows.rejections[environment.id] = [countOf()];
    Object.assign(rows.steps, {
      [environment.id]: [{ stepMs: Date.now() - 3_600_000, code: 'INVALID_ENUM', errors: 7 }],
    });
    const { status, text } = await browser.get(path);
    expect(status).toBe(200);
    for (const said of ['INVALID_ENUM', 'surface', 'playline-web 1.2.3', '<svg class="chart"', 'at most 7 in a step'])
      expect(text).toContain(said);
    expect((await browser.get(`${path}?code=OTHER`)).text).toContain('Nothing was rejected');
  });

  it('gives what it shows as CSV, in which no word of a client is a formula', async () => {
    const { browser, environment, path } = await openProject();
    rows.rejections[environment.id] = [countOf({ lastMs: 0, library: '=1+1' }), countOf({ code: 'OTHER' })];
    const { text, headers } = await browser.get(`${path}?as=csv&code=INVALID_ENUM`);
    expect(headers.get('content-disposition')).toContain('.csv');
    expect(text.split('\r\n').slice(1)).toEqual([
      `"INVALID_ENUM","surface","'=1+1","1.2.3","web",7,"1970-01-01T00:00:00.000Z","${TRACE}"`,
      '',
    ]);
  });

  it('shows nothing of another project, whoever asks', async () => {
    const [ours, other] = [await openProject('owner'), await openProject('owner')];
    rows.rejections[other.environment.id] = [countOf({ code: 'OF_ANOTHER' })];
    expect((await ours.browser.get(ours.path)).text).not.toContain('OF_ANOTHER');
    expect((await ours.browser.get(other.path)).status).toBe(404);
    expect((await portal.browser().get(other.path)).text).not.toContain('OF_ANOTHER');
  });

  it('shows words of clients as words: no script, no attribute, no other address', async () => {
    const { browser, environment, path } = await openProject();
    const odd = `"><img src=x onerror=alert(1)>${SCRIPT}`;
    rows.rejections[environment.id] = [
      countOf({ code: odd, field: odd, surface: odd, library: odd, libraryVersion: 'javascript:alert(1)' }),
    ];
    const { text } = await browser.get(`${path}?code=${encodeURIComponent(odd)}&trace=${encodeURIComponent(odd)}`);
    const shown = await browser.get(path);
    for (const page of [text, shown.text]) {
      expect(page).not.toContain(SCRIPT);
      expect(page).not.toContain('<img src=x');
      expect(page).not.toContain('href="javascript:');
    }
    expect(shown.text).toContain('&lt;script&gt;');
  });

  it('finds the errors of one request by the trace id of its answer, and says when a word is none', async () => {
    const { browser, environment, path } = await openProject();
    const found = { code: 'MISSING_REQUIRED_FIELD', field: 'eventName', surface: '', library: '', libraryVersion: '' };
    rows.traces[environment.id] = { [TRACE]: [{ ...found, receivedMs: Date.now() } as never] };
    expect((await browser.get(`${path}?trace=${TRACE.toUpperCase()}`)).text).toContain('MISSING_REQUIRED_FIELD');
    expect((await browser.get(`${path}?trace=${'cd'.repeat(16)}`)).text).toContain(
      'Nothing was rejected in that request',
    );
    expect((await browser.get(`${path}?trace=zz`)).text).toContain('32 hexadecimal digits');
  });
});
