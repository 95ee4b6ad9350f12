import { execFileSync } from 'node:child_process';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LiveEvent } from '../../services/portal/src/live/index.ts';
import { closeContexts, openTab, sharedBrowser } from './browser.ts';
import { pathFor } from './pages.ts';
import { seedAccount, seedProject } from './seed.ts';
import { openSeededPortal, type SeededPortal, TRACE_ID } from './seeded-portal.ts';

let browser: Browser;
let portal: SeededPortal;
let accountId: string;
beforeAll(async () => {
  [browser, portal] = await Promise.all([sharedBrowser(), openSeededPortal()]);
  accountId = await seedAccount(portal, { isAdministrator: true });
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
});

const header = { receivedAt: 1_790_000_000_479, storedAt: null, traceId: TRACE_ID, reason: '' } as const;

const toRejection = (position: string, field: string, messageIndex: number): LiveEvent => ({
  kind: 'rejection',
  ...header,
  position,
  outcome: 'rejected',
  code: 'INVALID_ENUM',
  field,
  surface: 'web',
  library: 'lib',
  libraryVersion: '1',
  messageIndex,
  sentence: `${field} is wrong`,
  fix: 'Fix it.',
  docs: '/docs/rejections/INVALID_ENUM',
});

const PROPERTIES = `{"text":"it's \\"quoted\\" \\\\ $HOME \`x\`","id":76561198000000001}`;
const message: LiveEvent = {
  kind: 'message',
  ...header,
  position: 'm-0-1',
  outcome: 'accepted',
  type: 'track',
  name: 'level_completed',
  messageId: '0192f3a4-5b6c-7d8e-9f00-000000000002',
  eventTime: 1_790_000_000_000,
  test: false,
  surface: 'web',
  library: 'lib',
  libraryVersion: '1',
  ids: { userId: "o'hara", identityType: 'email' },
  pageUrl: '',
  isCut: false,
  properties: PROPERTIES,
  traits: '',
  identityKey: '7'.repeat(32),
};

async function open(id: string, events: readonly LiveEvent[]): Promise<{ page: Page; errors: readonly string[] }> {
  const seed = await seedProject(portal, { id, toText: (field) => field });
  const environmentId = Object.keys(portal.rows.live).find((each) => each.startsWith(id)) ?? '';
  portal.rows.live[environmentId] = [...events];
  const tab = await openTab(browser, portal, accountId);
  await tab.page.goto(portal.origin + pathFor('/projects/:project/environments/:environment/live', seed));
  return tab;
}

it('a rejected message is one row, and its panel lists each error with its rule and a link to the docs', async () => {
  const { page } = await open('grouped', [
    toRejection('r-0-1', 'surface', 0),
    toRejection('r-0-2', 'identityType', 0),
    toRejection('r-0-3', 'surface', 1),
    // The portal sends an event again after a reconnect.
    toRejection('r-0-1', 'surface', 0),
    toRejection('r-0-4', 'surface', -1),
    toRejection('r-0-5', 'surface', -1),
  ]);
  const rows = page.locator('.live tbody tr');
  await rows.nth(3).waitFor();
  expect(await rows.locator('button').allTextContents()).toEqual([
    'surface is wrong',
    'surface is wrong',
    'surface is wrong',
    'surface is wrong, and 1 more',
  ]);
  await rows.last().getByRole('button').focus();
  await page.keyboard.press('Enter');
  const panel = page.locator('.drawer');
  expect(await panel.locator('.rule p:first-child').allTextContents()).toEqual([
    'surface is wrong.',
    'identityType is wrong.',
  ]);
  expect(await panel.getByRole('link', { name: 'Read about INVALID_ENUM' }).first().getAttribute('href')).toBe(
    '/docs/rejections/INVALID_ENUM',
  );
  await page.keyboard.press('Escape');
  expect(await panel.isVisible()).toBe(false);
});

it('a message shows when it happened and was received and stored, and its outcome changes in the panel', async () => {
  const { page, errors } = await open('stored', [
    message,
    { kind: 'outcome', position: 'm-0-1', outcome: 'stored', reason: '', storedAt: header.receivedAt + 1_100 },
  ]);
  await page.locator('.live tbody button').click();
  const text = (await page.locator('.drawer').innerText()).replaceAll(/\s+/g, ' ');
  for (const part of ['stored', 'Received +479 ms', 'Stored at most +1.1 s', '"id": 76561198000000001'])
    expect(text).toContain(part);
  expect(await page.getByRole('link', { name: 'Open in Explore' }).getAttribute('href')).toContain(
    `explore?message=${(message as { messageId: string }).messageId}`,
  );
  expect(errors).toEqual([]);
});

it('the copied curl command sends the same message with a new id, whatever its properties contain', async () => {
  const { page } = await open('copied', [message]);
  await page.locator('.live tbody button').click();
  const command = await page.locator('.drawer button', { hasText: 'Copy as curl' }).getAttribute('data-copy');
  const json = execFileSync('sh', ['-c', String(command).replace(/^curl .*? -d /, "printf '%s' ")], {
    encoding: 'utf8',
  });
  expect(json).toContain(`"properties":${PROPERTIES}`);
  const [sent] = (JSON.parse(json) as { messages: Record<string, unknown>[] }).messages;
  expect(sent).toMatchObject({ type: 'track', eventName: 'level_completed', userId: "o'hara", surface: 'web' });
  expect(sent?.messageId).not.toBe((message as { messageId: string }).messageId);
});
