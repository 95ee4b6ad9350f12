import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { LOW_CONTRAST_TEXT, TOO_WIDE } from '../docs/pages/probes.ts';
import { VIEWPORTS } from '../docs/pages/visit-docs.ts';
import {
  closeContexts,
  type FocusWalk,
  findViolations,
  openTab,
  screenshot,
  setViewport,
  sharedBrowser,
  TALL_ROWS,
  type Tab,
  walkFocus,
} from './browser.ts';
import { getPageSpec, listPages, pathFor } from './pages.ts';
import { type Seed, seedAccount, seedProject } from './seed.ts';
import { openSeededPortal, type SeededPortal } from './seeded-portal.ts';

const FIRST_PORTAL = await openSeededPortal();
const PAGES = listPages(FIRST_PORTAL)
  .map(({ path }) => path)
  .filter((path) => getPageSpec(path).isData !== true);
await FIRST_PORTAL.close();

const MISSING_PAGE = '/no/such/page';
/** The overview of an environment without messages. */
const CHECKLIST = '/projects/demo/environments/development/overview';
/** Number of entries on the live page: one message and one rejection. */
const SEEDED_EVENTS = 2;
const OPEN_DETAILS = `document.querySelectorAll('details, input.toggle').forEach((element) => {
  element.open = true;
  element.checked = true;
})`;
/** Runs in a page. A single script opens all details and runs all probes, because each call takes milliseconds. */
const PROBES = `(() => {
  ${OPEN_DETAILS};
  return { tooWide: ${TOO_WIDE}, tallRows: ${TALL_ROWS}, lowContrastText: ${LOW_CONTRAST_TEXT} };
})()`;
type ProbeResult = Readonly<Record<'tooWide' | 'tallRows' | 'lowContrastText', readonly string[]>>;
const HEIGHT_MAX = 3_000;
/** Runs in a page. Returns the number of visible main headings and the type of each visible button. */
const CONTROLS = `(() => {
  const findVisible = (selector) =>
    [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility({ visibilityProperty: true }));
  const buttons = findVisible('button, [role="button"], input:is([type="button"], [type="submit"], [type="reset"], [type="image"])');
  return { headings: findVisible('h1').length, buttons: buttons.map(({ type }) => type) };
})()`;

let browser: Browser;
let portal: SeededPortal;
let seed: Seed;
let administrator: string;
/** A tab of the administrator. It is reused, because opening a tab takes as long as loading a page. */
let sharedTab: Tab;
let tabs: Tab[] = [];

beforeAll(async () => {
  browser = await sharedBrowser();
  portal = await openSeededPortal();
  seed = await seedProject(portal, { id: 'demo', toText: (field) => `A ${field}` });
  administrator = await seedAccount(portal, { isAdministrator: true, name: 'Ada Administrator' });
  sharedTab = await openTab(browser, portal, administrator);
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
});
afterEach(async () => {
  for (const { context } of tabs) await context.close();
  tabs = [];
});

async function openSeparateTab(accountId: string | null, javaScript = true): Promise<Tab> {
  const tab = await openTab(browser, portal, accountId, javaScript);
  tabs.push(tab);
  return tab;
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(toUrl(path));
  if (path.endsWith('/live'))
    await page
      .locator('.live tbody button')
      .nth(SEEDED_EVENTS - 1)
      .waitFor();
}

async function walk(tab: Tab, path: string): Promise<FocusWalk> {
  // Prevents new rows, which would appear above the rows that Tab has already reached.
  const eventStream = '**/live/events**';
  const emptyStream = { contentType: 'text/event-stream', body: '' };
  if (path.endsWith('/live')) await tab.page.route(eventStream, (route) => route.fulfill(emptyStream));
  try {
    return await walkFocus(tab);
  } finally {
    await tab.page.unroute(eventStream);
  }
}

const toUrl = (page: string) =>
  portal.origin + (page === MISSING_PAGE || page === CHECKLIST ? page : pathFor(page, seed));

it.for([...PAGES, CHECKLIST, MISSING_PAGE])(
  '%s fits four viewports, has sufficient contrast and no serious axe violations, and can be used with the keyboard',
  async (path) => {
    const { page, errors } = sharedTab;
    await open(page, path);
    for (const viewport of VIEWPORTS.toReversed()) {
      await setViewport(page, viewport);
      const height = await page.evaluate('document.documentElement.scrollHeight');
      expect.soft(height, `${path} ${viewport.width}: height`).toBeLessThanOrEqual(HEIGHT_MAX);
    }
    for (const viewport of VIEWPORTS) {
      await setViewport(page, viewport);
      const name = `${path} ${viewport.width} ${viewport.scheme}`;
      const { tooWide, tallRows, lowContrastText } = await page.evaluate<ProbeResult>(PROBES);
      expect.soft(tooWide, `${name}: wider than the screen`).toEqual([]);
      expect.soft(tallRows, `${name}: a row taller than the screen`).toEqual([]);
      expect.soft(lowContrastText, `${name}: contrast below 4.5`).toEqual([]);
      expect.soft(await findViolations(page, viewport), `${name}: axe`).toEqual([]);
      await screenshot(sharedTab, path, viewport);
    }
    await setViewport(page, VIEWPORTS[0]!);
    const { invisible, unreached, reached } = await walk(sharedTab, path);
    const reported = errors.splice(0);
    expect(invisible, 'elements without a visible focus').toEqual([]);
    expect(unreached, 'elements that Tab does not reach').toEqual([]);
    expect(reached).toBeGreaterThan(path === MISSING_PAGE ? 0 : 3);
    // The browser logs the 404 response of the missing page.
    expect(reported).toEqual(path === MISSING_PAGE ? [expect.stringContaining('404')] : []);
  },
);

it('the erasures page shows all columns at a width of 1,280 pixels', async () => {
  const { page } = await openSeparateTab(administrator);
  await page.goto(toUrl('/projects/:project/environments/:environment/erasures'));
  const clipped = `[...document.querySelectorAll('.scroll')].map((region) => region.scrollWidth > region.clientWidth)`;
  expect(await page.evaluate(clipped)).toEqual([false]);
  expect(await page.getByRole('link', { name: 'Download' }).count()).toBe(1);
});

it('the chart of the overview shows the time and the values at the cursor', async () => {
  const { page } = await openSeparateTab(administrator);
  await page.goto(toUrl('/projects/:project/environments/:environment/overview'));
  const [plot, tip] = [page.locator('.u-over'), page.locator('.tip')];
  for (const viewport of VIEWPORTS) {
    await setViewport(page, viewport);
    for (const share of [0.01, 0.5, 0.99]) {
      // Hovering waits until the chart has its new size.
      await plot.hover();
      const { width, height } = (await plot.boundingBox())!;
      await plot.hover({ position: { x: share * width, y: height / 2 } });
      await tip.waitFor();
      expect(await tip.innerText()).toMatch(
        /^[A-Z][a-z]{2} \d+, \d\d:\d0 – ([A-Z][a-z]{2} \d+, )?\d\d:\d0\n[\d,.]+ accepted per minute\n[\d,.]+ errors per minute$/,
      );
      expect(await page.evaluate(TOO_WIDE)).toEqual([]);
    }
    await page.getByRole('heading', { level: 1 }).hover();
    await tip.waitFor({ state: 'hidden' });
  }
});

it('the home page of a user without projects fits four viewports', async () => {
  const newcomer = await seedAccount(portal, { name: 'Newcomer' });
  const tab = await openSeparateTab(newcomer);
  const { page, errors } = tab;
  await page.goto(`${portal.origin}/`);
  for (const viewport of VIEWPORTS) {
    await setViewport(page, viewport);
    expect.soft(await page.evaluate(TOO_WIDE)).toEqual([]);
    expect.soft(await findViolations(page, viewport)).toEqual([]);
    await screenshot(tab, 'empty home', viewport);
  }
  expect(errors).toEqual([]);
});

it('every page fits a narrow viewport even if all fields have 200 characters without spaces', async () => {
  const widePortal = await openSeededPortal();
  try {
    const wide = await seedProject(widePortal, { id: 'demo', toText: () => 'w'.repeat(200) });
    const accountId = await seedAccount(widePortal, { isAdministrator: true, name: 'w'.repeat(100) });
    const tab = await openTab(browser, widePortal, accountId);
    tabs.push(tab);
    await setViewport(tab.page, { width: 390, scheme: 'light' });
    for (const path of PAGES) {
      await tab.page.goto(widePortal.origin + pathFor(path, wide));
      await tab.page.evaluate(OPEN_DETAILS);
      expect.soft(await tab.page.evaluate(TOO_WIDE), path).toEqual([]);
    }
  } finally {
    await widePortal.close();
  }
});

it('the first link on a page moves the focus to the content', async () => {
  const { page } = await openSeparateTab(administrator);
  await page.goto(toUrl('/projects/:project'));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
});

it('without JavaScript, every page has one heading and no button that requires a script', async () => {
  const { page } = await openSeparateTab(administrator, false);
  for (const path of PAGES) {
    await page.goto(toUrl(path));
    const { headings, buttons } = await page.evaluate<{ headings: number; buttons: string[] }>(CONTROLS);
    expect([path, headings, buttons.filter((type) => type !== 'submit')]).toEqual([path, 1, []]);
  }
});

it('without JavaScript, the sidebar opens as a drawer on a narrow screen, and a row of a table shows its detail', async () => {
  const { page } = await openSeparateTab(administrator, false);
  await setViewport(page, { width: 390, scheme: 'light' });
  await page.goto(toUrl('/projects/:project/environments/:environment/mints'));
  const link = page.getByRole('link', { name: 'Members' });
  expect(await link.isVisible()).toBe(false);
  await page.getByRole('checkbox', { name: 'Menu' }).press('Space');
  expect(await link.isVisible()).toBe(true);
  await page.getByRole('checkbox', { name: 'Menu' }).press('Space');
  const detail = page.locator('tr.detail').first();
  expect([await link.isVisible(), await detail.isVisible()]).toEqual([false, false]);
  await page.getByRole('checkbox', { name: 'Show details of row 1' }).press('Space');
  expect(await detail.isVisible()).toBe(true);
});

it('a click on a row of a table shows its detail, but a click on a control in the row does not', async () => {
  const { page } = await openSeparateTab(administrator);
  await page.goto(toUrl('/projects/:project/environments/:environment/mints'));
  const row = page.locator('tbody tr').first();
  const detail = page.locator('tr.detail').first();
  await row.getByRole('button').first().click();
  expect(await detail.isVisible()).toBe(false);
  await row.locator('time').click();
  expect(await detail.isVisible()).toBe(true);
});

it('without JavaScript, a failed form shows the error and the submitted values', async () => {
  const { page } = await openSeparateTab(administrator, false);
  await page.goto(`${portal.origin}/`);
  await page.getByText('Create a project').first().click();
  await page.getByLabel('Name').fill('Created without a script');
  await page.getByRole('button', { name: 'Create project' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Overview');
  await page.getByRole('link', { name: 'Limits' }).click();
  await page.getByText('Change the cap (').click();
  await page.getByLabel('Messages per second').last().fill('999999999');
  await page.getByRole('button', { name: 'Save cap' }).click();
  expect(await page.getByRole('alert').textContent()).toContain('messages per second');
  expect(await page.getByLabel('Messages per second').last().inputValue()).toBe('999999999');
});
