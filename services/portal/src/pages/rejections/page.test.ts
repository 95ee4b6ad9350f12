import { expect, it } from 'vitest';
import type { RejectionCount } from '../../reads/index.ts';
import { createMemoryReads, type MemoryRows } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

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

const rows = {
  rejections: {} as Record<string, RejectionCount[]>,
  steps: {} as NonNullable<MemoryRows['steps']> & Record<string, unknown>,
  traces: {} as Record<string, Record<string, never[]>>,
};
const portal = usePortal({ reads: createMemoryReads(rows) });

async function openProject() {
  const project = await portal.addProject('Game');
  const [environment] = project.environments.filter(({ name }) => name === 'development');
  const path = `/projects/${project.id}/environments/development/rejections`;
  return { environment: environment!, path, browser: await portal.signIn({ project, role: 'analyst' }) };
}

it('the page of rejections shows rejections by code, field and client, and a chart over time', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [countOf()];
  Object.assign(rows.steps, {
    [environment.id]: [{ stepMs: Date.now() - 3_600_000, code: 'INVALID_ENUM', errors: 7 }],
  });
  const { status, text } = await browser.get(path);
  expect(status).toBe(200);
  for (const expected of ['INVALID_ENUM', 'surface', 'playline-web 1.2.3', '<svg class="chart"'])
    expect(text).toContain(expected);
  expect((await browser.get(`${path}?code=OTHER`)).text).toContain('No rejections');
});

it('the file has the rejections of the page', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [countOf({ lastMs: 0, library: 'web' }), countOf({ code: 'OTHER' })];
  const { text, headers } = await browser.get(`${path}?as=csv&code=INVALID_ENUM`);
  expect(headers.get('content-disposition')).toContain('.csv');
  expect(text.split('\r\n').slice(1)).toEqual([
    `"INVALID_ENUM","surface","web","1.2.3","web",7,"1970-01-01T00:00:00.000Z","${TRACE}"`,
    '',
  ]);
});

it('the search for rejections by trace id shows the errors of one request and refuses an invalid id', async () => {
  const { browser, environment, path } = await openProject();
  const found = { code: 'MISSING_REQUIRED_FIELD', field: 'eventName', surface: '', library: '', libraryVersion: '' };
  rows.traces[environment.id] = { [TRACE]: [{ ...found, receivedMs: Date.now() } as never] };
  expect((await browser.get(`${path}?trace=${TRACE.toUpperCase()}`)).text).toContain('MISSING_REQUIRED_FIELD');
  expect((await browser.get(`${path}?trace=${'cd'.repeat(16)}`)).text).not.toContain('MISSING_REQUIRED_FIELD');
  expect((await browser.get(`${path}?trace=zz`)).text).toContain('32 hexadecimal digits');
});
