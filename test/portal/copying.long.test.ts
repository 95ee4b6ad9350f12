import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { closeContexts, openTab, sharedBrowser } from './browser.ts';
import { pathFor } from './pages.ts';
import { type Seed, seedAccount, seedProject } from './seed.ts';
import { openSeededPortal, type SeededPortal } from './seeded-portal.ts';

let browser: Browser;
let portal: SeededPortal;
let seed: Seed;
let accountId: string;
beforeAll(async () => {
  [browser, portal] = await Promise.all([sharedBrowser(), openSeededPortal()]);
  seed = await seedProject(portal, { id: 'demo', toText: (field) => `<b>"${field}"</b>` });
  accountId = await seedAccount(portal, { isAdministrator: true });
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
});

/** Runs in a page. Returns the string to copy and the displayed string for each field in the panel. */
const READ_COPIED = `Object.fromEntries([...document.querySelectorAll('.drawer dd')].flatMap((dd) => {
  const button = dd.querySelector('button.copy');
  return button === null ? [] : [[dd.previousSibling.textContent, [button.dataset.copy, dd.querySelector('code').title]]];
}))`;

it('the copy buttons in the panel of a live message copy the exact value of each field', async () => {
  const { page, context, errors } = await openTab(browser, portal, accountId);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: portal.origin });
  await page.goto(portal.origin + pathFor('/projects/:project/environments/:environment/live', seed));
  const row = page.locator('.live tbody tr', { hasText: 'live event name' });
  await row.getByRole('button').click();
  const copied = (await page.evaluate(READ_COPIED)) as Record<string, [copied: string, shown: string]>;
  const names = ['Anonymous id', 'User id', 'Page', 'Message id', 'Trace id'];
  expect(Object.keys(copied)).toEqual(names);
  for (const [name, [text, shown]] of Object.entries(copied)) expect([name, text]).toEqual([name, shown]);
  const panel = page.locator('.drawer');
  await panel.getByRole('button', { name: 'Copy user id' }).click();
  await panel.getByRole('button', { name: 'Copied user id' }).waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('<b>"user id"</b>');
  expect(errors).toEqual([]);
  await context.close();
});
