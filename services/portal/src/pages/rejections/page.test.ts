import { expect, it } from 'vitest';
import type { RejectionCount } from '../../reads/index.ts';
import { createMemoryReads, type MemoryRows } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const TRACE_ID = 'ab'.repeat(16);
const createCount = (overrides: Partial<RejectionCount> = {}): RejectionCount => ({
  code: 'INVALID_ENUM',
  field: 'surface',
  surface: 'web',
  library: 'playline-web',
  libraryVersion: '1.2.3',
  errors: 7,
  lastMs: Date.now() - 1000,
  lastTraceId: TRACE_ID,
  ...overrides,
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

it('the rejections page shows rejections by code, field and client, and charts them over time', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [createCount()];
  Object.assign(rows.steps, {
    [environment.id]: [{ stepMs: Date.now() - 3_600_000, code: 'INVALID_ENUM', errors: 7 }],
  });
  const { status, text } = await browser.get(path);
  expect(status).toBe(200);
  for (const expected of ['INVALID_ENUM', 'surface', 'playline-web 1.2.3', '<svg class="chart"'])
    expect(text).toContain(expected);
  expect((await browser.get(`${path}?code=OTHER`)).text).toContain('No rejections');
});

it('the rejections export contains the rejections on the page', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [createCount({ lastMs: 0, library: 'web' }), createCount({ code: 'OTHER' })];
  const { text, headers } = await browser.get(`${path}?as=csv&code=INVALID_ENUM`);
  expect(headers.get('content-disposition')).toContain('.csv');
  expect(text.split('\r\n').slice(1)).toEqual([
    `"INVALID_ENUM","surface","web","1.2.3","web",7,"1970-01-01T00:00:00.000Z","${TRACE_ID}"`,
    '',
  ]);
});

it('the trace id search shows the rejections of one request and reports an invalid trace id', async () => {
  const { browser, environment, path } = await openProject();
  const found = { code: 'MISSING_REQUIRED_FIELD', field: 'eventName', surface: '', library: '', libraryVersion: '' };
  rows.traces[environment.id] = { [TRACE_ID]: [{ ...found, receivedMs: Date.now() } as never] };
  expect((await browser.get(`${path}?trace=${TRACE_ID.toUpperCase()}`)).text).toContain('MISSING_REQUIRED_FIELD');
  expect((await browser.get(`${path}?trace=${'cd'.repeat(16)}`)).text).not.toContain('MISSING_REQUIRED_FIELD');
  expect((await browser.get(`${path}?trace=zz`)).text).toContain('32 hexadecimal digits');
});
