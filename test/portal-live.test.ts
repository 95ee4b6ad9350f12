import { until } from '@playline/testkit/until';
import type { Browser, Page } from 'playwright-core';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../services/portal/src/live/test/live-world.ts';
import { openPortal, type TestPortal } from '../services/portal/src/test/open-portal.ts';
import { closeContexts, sharedBrowser } from './portal/browser.ts';

let browser: Browser;
let portal: TestPortal | undefined;
beforeAll(async () => {
  browser = await sharedBrowser();
});
afterEach(async () => {
  await closeContexts(browser);
  await portal?.close();
});

interface LivePage {
  readonly world: LiveWorld;
  readonly page: Page;
  /** Script and console errors, dialogs, and requests to other origins. */
  readonly errors: string[];
  readonly environmentId: string;
}

async function open(query = ''): Promise<LivePage> {
  const world = createLiveWorld({ permissionMs: 500 });
  portal = await openPortal({ live: world.hub });
  const project = await portal.addProject('Sky');
  const developer = await portal.signIn({ project, role: 'developer' });
  const [name = '', value = ''] = developer.cookie.split('=');
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(20_000);
  await context.addCookies([{ name, value, url: portal.origin }]);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(portal!.origin)) errors.push(`external request: ${request.url()}`);
  });
  await page.goto(`${portal.origin}/projects/${project.id}/environments/production/live${query}`);
  await page.getByText('0 of 0 messages shown').waitFor();
  return { world, page, errors, environmentId: `${project.id}-production` };
}

const ATTACK = '"><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>\u202e\r\ndata: x\n\n';
/** Text fields of a message. */
const FIELDS = [
  ...['eventName', 'type', 'surface', 'library', 'libraryVersion', 'anonymousId', 'userId', 'identityType', 'fromId'],
  ...['fromType', 'toId', 'toType', 'deviceId', 'sessionId', 'pageUrl', 'properties', 'traits', 'traceId', 'userAgent'],
] as const;

it('the live page shows scripts in message fields as text', async () => {
  const { world, page, errors, environmentId } = await open();
  await world.send({ environmentId, ...Object.fromEntries(FIELDS.map((field) => [field, `${field} ${ATTACK}`])) });
  const rejected = { environmentId, field: `field ${ATTACK}`, code: `code ${ATTACK}`, surface: ATTACK };
  await world.reject({ ...rejected, library: ATTACK, libraryVersion: ATTACK });
  await page.getByText('2 of 2 messages shown').waitFor();
  let text = '';
  for (const open of await page.locator('.live tbody button').all()) {
    await open.click();
    text += await page.locator('.live .drawer').innerText();
  }
  for (const field of ['eventName', 'library', 'properties', 'traits', 'field'])
    expect(text).toContain(`${field} "><img src=x onerror=alert(1)>`);
  expect(await page.locator('.live img, .live script, .live svg[onload]').count()).toBe(0);
  expect(errors).toEqual([]);
});

it('the live page updates outcomes, and removes the data of erased people even while it is paused', async () => {
  const { world, page, environmentId, errors } = await open();
  const ada = Buffer.alloc(16, 1);
  const position = await world.send({ environmentId, eventName: 'first', userKey: ada, userId: 'ada@example.org' });
  await page.locator('td', { hasText: 'accepted' }).waitFor();
  world.commit(position.partition, position.offset + 1);
  await page.locator('td', { hasText: 'stored' }).waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await world.send({ environmentId, eventName: 'second', userKey: ada, userId: 'ada@example.org' });
  await page.getByText('1 waiting').waitFor();
  world.fences.keys.add(ada.toString('hex'));
  await page.locator('td', { hasText: 'fenced' }).waitFor();
  expect(await page.content()).not.toContain('ada@example.org');
  await page.getByRole('button', { name: 'Resume' }).click();
  await until('both rows are fenced', async () => (await page.locator('td', { hasText: 'fenced' }).count()) === 2);
  expect(await page.content()).not.toContain('ada@example.org');
  expect(errors).toEqual([]);
});

it('the live page reports that the stream has ended, and does not reconnect, when the user loses access', async () => {
  const { world, page } = await open();
  const [account] = await portal!.parts.accounts.all();
  for (const { id } of await portal!.parts.sessions.list(account!.id)) await portal!.parts.sessions.end(id);
  await page.getByText('This view has ended').waitFor();
  expect(world.hub.subscribers).toBe(0);
});

it('the live page retains only the newest 200 rows', async () => {
  const { world, page, environmentId } = await open();
  // Sent in two batches, because the hub would sample a larger batch.
  for (const [from, to] of [
    [0, 225],
    [225, 450],
  ] as const) {
    for (let index = from; index < to; index++) await world.send({ environmentId, eventName: `event ${index}` });
    await page.getByText(`of ${to} messages shown`).waitFor();
  }
  await page.locator('tbody tr', { hasText: 'event 449' }).first().waitFor();
  expect(await page.locator('.live tbody tr').count()).toBe(200);
});

it.each([390, 1280])(
  'the heading of the live page is visible without scrolling at a width of %d pixels',
  async (width) => {
    const { page } = await open();
    await page.setViewportSize({ width, height: 800 });
    const heading = await page.getByRole('heading', { level: 1 }).boundingBox();
    expect(heading!.y).toBeLessThan(220);
    expect(await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')).toBe(false);
  },
);
