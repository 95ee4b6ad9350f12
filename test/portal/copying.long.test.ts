import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { closeContexts, openTab, sharedBrowser } from './browser.ts';
import { pathFor } from './pages.ts';
import { type Planted, plant, plantAccount } from './planted.ts';
import { openPlantedPortal, type PlantedPortal } from './planted-portal.ts';

let browser: Browser;
let portal: PlantedPortal;
let planted: Planted;
let accountId: string;
beforeAll(async () => {
  [browser, portal] = await Promise.all([sharedBrowser(), openPlantedPortal()]);
  planted = await plant(portal, { id: 'demo', textOf: (field) => `<b>"${field}"</b>` });
  accountId = await plantAccount(portal, { isAdministrator: true });
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
});

/** Runs in a page: for the open row, what each button copies and the label beside it. */
const COPIED = `Object.fromEntries([...document.querySelectorAll('details[open] dd')].flatMap((dd) => {
  const button = dd.querySelector('button.copy');
  return button === null ? [] : [[dd.previousSibling.textContent, [button.dataset.copy, dd.querySelector('bdi').textContent]]];
}))`;

it('a folded row of live messages has a button for each of its values, which copies the exact text', async () => {
  const { page, context, faults } = await openTab(browser, portal, accountId);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: portal.origin });
  await page.goto(portal.origin + pathFor('/projects/:project/environments/:environment/live', planted));
  const row = page.locator('.live tbody tr', { hasText: 'name of an event' });
  await row.locator('summary').click();
  const copied = (await page.evaluate(COPIED)) as Record<string, [copied: string, shown: string]>;
  const names = ['message id', 'trace id', 'anonymousId', 'userId', 'page', 'properties', 'traits'];
  expect(Object.keys(copied)).toEqual(names);
  for (const [name, [text, shown]] of Object.entries(copied)) expect([name, text]).toEqual([name, shown]);
  await row.getByRole('button', { name: 'Copy userId' }).click();
  await row.getByRole('button', { name: 'Copied userId' }).waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('<b>"user id"</b>');
  expect(faults).toEqual([]);
  await context.close();
});
