import { expect, it } from 'vitest';
import type { RejectionCause } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const TRACE_ID = 'ab'.repeat(16);
const createCause = (overrides: Partial<RejectionCause> = {}): RejectionCause => ({
  code: 'INVALID_ENUM',
  field: 'surface',
  surfaces: ['web'],
  library: 'playline-web',
  libraryVersion: '1.2.3',
  errors: 7,
  requests: 5,
  firstMs: Date.now() - 2000,
  lastMs: Date.now() - 1000,
  traceIds: [TRACE_ID],
  trend: new Map([[23, 7]]),
  ...overrides,
});

const rows = {
  rejections: {} as Record<string, RejectionCause[]>,
  traces: {} as Record<string, Record<string, never[]>>,
};
const portal = usePortal({ reads: createMemoryReads(rows) });

async function openProject() {
  const project = await portal.addProject('Game');
  const [environment] = project.environments.filter(({ name }) => name === 'development');
  const path = `/projects/${project.id}/environments/development/rejections`;
  return { environment: environment!, path, browser: await portal.signIn({ project, role: 'analyst' }) };
}

it('a cause has the rule with its bounds, the fix, a trend, sample requests and a link to the docs', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [
    createCause(),
    createCause({ code: 'NEW_CODE', field: 'x', errors: 21, trend: new Map([[23, 21]]) }),
  ];
  const { status, text } = await browser.get(path);
  expect(status).toBe(200);
  for (const expected of [
    'surface is not one of web, pixel, unity, unreal',
    'Use one of the values',
    'playline-web 1.2.3',
    '25.0\u00a0%',
    'at most 28 in one hour',
    '<svg class="bars"',
    `trace=${TRACE_ID}`,
    '/docs/rejections/INVALID_ENUM',
    'x: NEW_CODE',
  ])
    expect(text).toContain(expected);
  expect((await browser.get(`${path}?code=OTHER`)).text).toContain('No rejections');
});

it('the rejections export contains the rejections on the page', async () => {
  const { browser, environment, path } = await openProject();
  rows.rejections[environment.id] = [
    createCause({ firstMs: 0, lastMs: 0, library: 'web' }),
    createCause({ code: 'OTHER' }),
  ];
  const { text, headers } = await browser.get(`${path}?as=csv&code=INVALID_ENUM`);
  expect(headers.get('content-disposition')).toContain('.csv');
  expect(text.split('\r\n').slice(1)).toEqual([
    `"INVALID_ENUM","surface","web","1.2.3","web",7,5,"1970-01-01T00:00:00.000Z","1970-01-01T00:00:00.000Z","${TRACE_ID}"`,
    '',
  ]);
});

it('the trace id search shows the rejections of one request and reports an invalid trace id', async () => {
  const { browser, environment, path } = await openProject();
  const found = { code: 'MISSING_REQUIRED_FIELD', field: 'eventName', surface: '', library: '', libraryVersion: '' };
  rows.traces[environment.id] = { [TRACE_ID]: [{ ...found, receivedMs: Date.now() } as never] };
  expect((await browser.get(`${path}?trace=${TRACE_ID.toUpperCase()}`)).text).toContain('eventName is required');
  expect((await browser.get(`${path}?trace=${'cd'.repeat(16)}`)).text).not.toContain('eventName is required');
  expect((await browser.get(`${path}?trace=zz`)).text).toContain('32 hexadecimal digits');
});
