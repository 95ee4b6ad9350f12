import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { until } from '@playline/testkit';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { expectReadable } from './probes.ts';
import { fillKey, formOf, sendForm, useBrowser, VIEWPORTS, visitDocs } from './visit-docs.ts';

useBrowser();

const PAGES = [
  '/docs',
  '/docs/reference',
  '/docs/errors',
  '/docs/errors/VALIDATION_ERROR',
  '/docs/rejections/INVALID_VALUE',
  '/docs/cookbook',
  '/docs/quickstart',
  '/docs/messages',
  '/docs/limits',
  '/docs/analysts',
  '/docs/sdks',
  '/docs/pages',
  '/docs/no/such/page',
];

it.each(VIEWPORTS)(
  'every page fits the screen, has readable contrast and loads without errors at $width pixels, $scheme',
  async (viewport) => {
    // Reuses one tab, because opening a browser profile takes longer than loading the pages.
    const { page, faults, gateway } = await visitDocs(PAGES[0]!, viewport);
    for (const path of PAGES) {
      await page.goto(gateway.url + path);
      await expectReadable(page, path);
      const expected = path === '/docs/no/such/page' ? [expect.stringContaining('404')] : [];
      expect(faults.splice(0), path).toEqual(expected);
      expect(await page.getByRole('banner').getByRole('link', { name: 'Playline' }).count(), path).toBe(1);
    }
  },
);

it.each(VIEWPORTS.filter(({ scheme }) => scheme === 'light'))(
  'no page has axe violations at $width pixels',
  async (viewport) => {
    const { page, gateway } = await visitDocs(PAGES[0]!, viewport);
    const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    for (const path of PAGES) {
      await page.goto(gateway.url + path);
      const check = `(() => { ${axe}; return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + nodes[0].html)); })()`;
      expect(await page.evaluate(check), path).toEqual([]);
    }
  },
);

it('a keyboard user finds a field with the search, and Escape closes the search', async () => {
  const { page, gateway, faults } = await visitDocs('/docs/errors/VALIDATION_ERROR');
  await page.keyboard.press('/');
  await page.keyboard.type('eventTimestamp');
  await page.getByText(/^\d+ results$/).waitFor();
  await page.keyboard.press('Escape');
  expect(await page.getByRole('dialog').isVisible()).toBe(false);
  await page.keyboard.press('/');
  await page.keyboard.press('ArrowDown');
  expect(await page.evaluate('document.activeElement.href')).toBe(`${gateway.url}/docs/messages#field.eventTimestamp`);
  await page.keyboard.press('Enter');
  await page.waitForURL(/messages#field\.eventTimestamp$/);
  expect(faults).toEqual([]);
});

it('without JavaScript, the search link leads to a list of all pages, and all tabs of an example are visible', async () => {
  const { page, gateway } = await visitDocs('/docs/quickstart');
  expect(await page.locator('.tabs pre:visible').count()).toBe(1);
  await page.getByRole('tab', { name: 'curl' }).press('ArrowRight');
  expect(await page.locator('.tabs pre:visible').textContent()).toContain('openAudienceClient');
  await page.route('**/*.js', (route) => route.abort());
  await page.reload();
  expect(await page.locator('.tabs pre:visible').count()).toBe(5);
  await page.getByRole('link', { name: 'Search' }).click();
  await page.getByRole('main').getByRole('link', { name: 'INVALID_VALUE' }).click();
  expect(page.url()).toBe(`${gateway.url}/docs/rejections/INVALID_VALUE`);
});

it('the page for VALIDATION_ERROR has collapsed examples that open from the keyboard', async () => {
  const { page } = await visitDocs('/docs/errors/VALIDATION_ERROR');
  expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThan(2_400);
  const collapsed = page.locator('details:not([open])').first();
  expect(await collapsed.locator('pre').first().isVisible()).toBe(false);
  await collapsed.locator('summary').focus();
  await page.keyboard.press('Enter');
  expect(await page.locator('details[open] pre').last().isVisible()).toBe(true);
});

it('the page for VALIDATION_ERROR links to the operations that return the error', async () => {
  const { page, gateway } = await visitDocs('/docs/errors/VALIDATION_ERROR');
  await page.getByRole('main').getByRole('link', { name: 'PUT /v1/audience/tracking-consent' }).click();
  expect(page.url()).toBe(`${gateway.url}/docs/reference#updateTrackingConsent`);
});

it('a link to a nested example expands the example', async () => {
  const { page } = await visitDocs('/docs/reference#partly-rejected');
  expect(await page.locator('#partly-rejected pre').first().isVisible()).toBe(true);
  expect(await page.locator('#track pre').first().isVisible()).toBe(false);
});

it('a keyboard user can send the first event, and the focus is always visible', async () => {
  const { page, gateway } = await visitDocs('/docs');
  const focused = () => page.evaluate('document.activeElement.dataset.key ?? document.activeElement.type ?? ""');
  const tabTo = async (target: string) => {
    for (let presses = 0; presses < 60; presses++) {
      await page.keyboard.press('Tab');
      const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
      expect(outline).not.toBe('none');
      if ((await focused()) === target) return;
    }
    throw new Error(`cannot reach ${target} with Tab`);
  };
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
  await tabTo('publishable');
  await page.keyboard.type(gateway.key);
  await tabTo('submit');
  await page.keyboard.press('Enter');
  const form = formOf(page, 'Ingest messages');
  await form.getByText(/\b200\b/).waitFor();
});

it('a keyboard user can open and close the menu on a narrow screen', async () => {
  const { page, gateway } = await visitDocs('/docs', { width: 390, scheme: 'light' });
  const target = page.getByRole('navigation').getByRole('link', { name: 'Error codes', exact: true });
  expect(await target.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Menu' }).press('Enter');
  expect(await target.isVisible()).toBe(true);
  await page.keyboard.press('Escape');
  expect(await target.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Menu' }).press('Enter');
  await target.press('Enter');
  expect(page.url()).toBe(`${gateway.url}/docs/errors`);
});

const copyFirst = async (page: Page) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: /^Copy/ }).first().click();
  await page.getByText('Copied').first().waitFor();
};

it('the Copy button copies the code exactly as shown', async () => {
  const { page } = await visitDocs('/docs/rejections/INVALID_ENUM');
  await copyFirst(page);
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await page.locator('pre').first().textContent());
});

it('the Copy button works on a page without HTTPS', async () => {
  const { page } = await visitDocs('/docs');
  await page.evaluate('globalThis.clipboard = navigator.clipboard');
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
  await copyFirst(page);
  expect(await page.evaluate('clipboard.readText()')).toBe(await page.locator('pre:visible').first().textContent());
});

it('a form does not submit when scripts fail to load, so that no key gets into a URL', async () => {
  const { page, gateway, faults } = await visitDocs('/docs');
  await page.route('**/*.js', (route) => route.abort());
  await page.reload();
  const form = formOf(page, 'Ingest messages');
  await fillKey(form, gateway);
  // A Playwright click would wait for a navigation that never happens.
  await form.evaluate((element) => (element as unknown as { requestSubmit(): void }).requestSubmit());
  await until('the browser blocks the submission', () => faults.some((text) => text.includes('form-action')));
  expect(faults.join()).not.toContain(gateway.key);
  expect(page.url()).toBe(`${gateway.url}/docs`);
  await page.route('**/*.js', (route) => route.continue());
  await page.reload();
  await fillKey(form, gateway);
  expect(await sendForm(form)).toMatch(/\b200\b/);
});
