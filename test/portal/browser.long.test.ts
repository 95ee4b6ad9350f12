import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { FAINT_TEXT, TOO_WIDE } from '../docs/pages/probes.ts';
import { VIEWPORTS } from '../docs/pages/visit-docs.ts';
import {
  closeContexts,
  openTab,
  seriousIn,
  setViewport,
  sharedBrowser,
  TALL_ROWS,
  type Tab,
  takePicture,
  type Walk,
  walkThrough,
} from './browser.ts';
import { pagesOf, pathFor, useOf } from './pages.ts';
import { type Planted, plant, plantAccount } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';

const FIRST_PORTAL = await openPlantedPortal();
const PAGES = pagesOf(FIRST_PORTAL)
  .map(({ path }) => path)
  .filter((path) => useOf(path).isData !== true);
await FIRST_PORTAL.close();

const NO_PAGE = '/no/such/page';
/** Number of entries on the page of live messages: a message and a rejection. */
const PLANTED_EVENTS = 2;
const OPEN_DETAILS = "document.querySelectorAll('details').forEach((one) => { one.open = true; })";
/** Runs in a page: opens details and runs all probes in one call, because each call costs milliseconds. */
const PROBES = `(() => {
  ${OPEN_DETAILS};
  return { tooWide: ${TOO_WIDE}, tallRows: ${TALL_ROWS}, faintText: ${FAINT_TEXT} };
})()`;
type Probed = Readonly<Record<'tooWide' | 'tallRows' | 'faintText', readonly string[]>>;
/** Runs in a page: number of visible main headings, and types of visible buttons. */
const CONTROLS = `(() => {
  const seen = (selector) =>
    [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility({ visibilityProperty: true }));
  const buttons = seen('button, [role="button"], input:is([type="button"], [type="submit"], [type="reset"], [type="image"])');
  return { headings: seen('h1').length, buttons: buttons.map(({ type }) => type) };
})()`;

let browser: Browser;
let portal: PlantedPortal;
let planted: Planted;
let administrator: string;
/** A tab of the administrator, kept open, because opening one takes as long as a visit. */
let sharedTab: Tab;
let tabs: Tab[] = [];

beforeAll(async () => {
  browser = await sharedBrowser();
  portal = await openPlantedPortal();
  planted = await plant(portal, { id: 'demo', textOf: (field) => `A ${field}` });
  administrator = await plantAccount(portal, { isAdministrator: true, name: 'Ada Administrator' });
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

async function tabOf(accountId: string | null, javaScript = true): Promise<Tab> {
  const tab = await openTab(browser, portal, accountId, javaScript);
  tabs.push(tab);
  return tab;
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(at(path));
  if (path.endsWith('/live'))
    await page
      .locator('.live summary')
      .nth(PLANTED_EVENTS - 1)
      .waitFor();
}

async function walk(tab: Tab, path: string): Promise<Walk> {
  // A browser that reconnects gets the planted events again, above those that Tab has already reached.
  const again = '**/live/events**';
  const nothing = { contentType: 'text/event-stream', body: '' };
  if (path.endsWith('/live')) await tab.page.route(again, (route) => route.fulfill(nothing));
  try {
    return await walkThrough(tab);
  } finally {
    await tab.page.unroute(again);
  }
}

const at = (page: string) => portal.origin + (page === NO_PAGE ? page : pathFor(page, planted));

it.for([...PAGES, NO_PAGE])(
  '%s fits four viewports with readable contrast, without errors or serious findings of axe, and Tab reaches everything',
  async (path) => {
    const { page, faults } = sharedTab;
    await open(page, path);
    for (const viewport of VIEWPORTS) {
      await setViewport(page, viewport);
      const name = `${path} ${viewport.width} ${viewport.scheme}`;
      const { tooWide, tallRows, faintText } = await page.evaluate<Probed>(PROBES);
      expect.soft(tooWide, `${name}: wider than the screen`).toEqual([]);
      expect.soft(tallRows, `${name}: a row higher than the screen`).toEqual([]);
      expect.soft(faintText, `${name}: contrast below 4.5`).toEqual([]);
      expect.soft(await seriousIn(page, viewport), `${name}: axe`).toEqual([]);
      await takePicture(sharedTab, path, viewport);
    }
    await setViewport(page, VIEWPORTS[0]!);
    const { unseen, unreached, reached } = await walk(sharedTab, path);
    const reported = faults.splice(0);
    expect(unseen, 'the focus is not visible').toEqual([]);
    expect(unreached, 'Tab does not reach it').toEqual([]);
    expect(reached).toBeGreaterThan(path === NO_PAGE ? 0 : 3);
    // The browser itself logs the 404 of a page that does not exist.
    expect(reported).toEqual(path === NO_PAGE ? [expect.stringContaining('404')] : []);
  },
);

it('the page of erasures shows all columns at 1,280 pixels', async () => {
  const { page } = await tabOf(administrator);
  await page.goto(at('/projects/:project/environments/:environment/erasures'));
  const isCut = `[...document.querySelectorAll('.scroll')].map((region) => region.scrollWidth > region.clientWidth)`;
  expect(await page.evaluate(isCut)).toEqual([false]);
  expect(await page.getByRole('link', { name: 'Download' }).count()).toBe(1);
});

it('the start page of a user without a project fits four viewports', async () => {
  const newcomer = await plantAccount(portal, { name: 'Newcomer' });
  const tab = await tabOf(newcomer);
  const { page, faults } = tab;
  await page.goto(`${portal.origin}/`);
  for (const viewport of VIEWPORTS) {
    await setViewport(page, viewport);
    expect.soft(await page.evaluate(TOO_WIDE)).toEqual([]);
    expect.soft(await seriousIn(page, viewport)).toEqual([]);
    await takePicture(tab, 'home with nothing yet', viewport);
  }
  expect(faults).toEqual([]);
});

it('no page is wider than a narrow viewport when every field has 200 characters without a space', async () => {
  const long = await openPlantedPortal();
  try {
    const wide = await plant(long, { id: 'demo', textOf: () => 'w'.repeat(200) });
    const accountId = await plantAccount(long, { isAdministrator: true, name: 'w'.repeat(100) });
    const tab = await openTab(browser, long, accountId);
    tabs.push(tab);
    await setViewport(tab.page, { width: 390, scheme: 'light' });
    for (const path of PAGES) {
      await tab.page.goto(long.origin + pathFor(path, wide));
      await tab.page.evaluate(OPEN_DETAILS);
      expect.soft(await tab.page.evaluate(TOO_WIDE), path).toEqual([]);
    }
  } finally {
    await long.close();
  }
});

it('the first link of a page leads to its content', async () => {
  const { page } = await tabOf(administrator);
  await page.goto(at('/projects/:project'));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
});

it('without JavaScript, every page has one heading and no button that needs a script', async () => {
  const { page } = await tabOf(administrator, false);
  for (const path of PAGES) {
    await page.goto(at(path));
    const { headings, buttons } = await page.evaluate<{ headings: number; buttons: string[] }>(CONTROLS);
    expect([path, headings, buttons.filter((type) => type !== 'submit')]).toEqual([path, 1, []]);
  }
});

it('without JavaScript, a failed form shows the error and keeps the typed values', async () => {
  const { page } = await tabOf(administrator, false);
  await page.goto(`${portal.origin}/`);
  await page.getByText('Create a project').first().click();
  await page.getByLabel('Name').fill('Created without a script');
  await page.getByRole('button', { name: 'Create project' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('development');
  await page.getByRole('link', { name: 'Limits' }).click();
  await page.getByText('Change the cap (').click();
  await page.getByLabel('Messages per second').last().fill('999999999');
  await page.getByRole('button', { name: 'Save cap' }).click();
  expect(await page.getByRole('alert').textContent()).toContain('messages per second');
  expect(await page.getByLabel('Messages per second').last().inputValue()).toBe('999999999');
});
