import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { until } from '@playline/testkit';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { closeContexts, sharedBrowser } from './browser.ts';
import { type NewcomerWorld, openNewcomerWorld } from './newcomer-world.ts';

const run = promisify(execFile);
const PASSWORD = 'correct horse battery';
const LIVE_MAX_MS = 2_000;
const REVOCATION_MAX_MS = 1_000;
const TIMEOUT_MS = 30_000;
/** Response statuses for an erasure request without a person, with a valid key and with an invalid key. */
const [VALID_KEY_STATUS, INVALID_KEY_STATUS] = [400, 401];

let world: NewcomerWorld;
let browser: Browser;
let page: Page;
const errors: string[] = [];

beforeAll(async () => {
  world = await openNewcomerWorld();
  browser = await sharedBrowser();
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
});
afterAll(async () => {
  await closeContexts(browser);
  await world?.close();
});

const clickButton = (name: string | RegExp) => page.getByRole('button', { name }).click();
const readHeading = () => page.getByRole('heading', { level: 1 }).textContent();
const readBlock = async (index: number) => (await page.locator('.sample code').nth(index).textContent()) ?? '';

/** Creates a link with `npm run accounts -- link`. */
async function createFirstLink(): Promise<string> {
  return JSON.parse(await world.operate('accounts', 'link', '--json', '--origin', world.portal)).link;
}

async function becomeAdministrator(): Promise<void> {
  await page.goto(await createFirstLink());
  await page.getByLabel('Login').fill('ada@example.com');
  await page.getByLabel('Your name').fill('Ada');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill(PASSWORD);
  await clickButton('Continue with a password');
  expect(await readHeading()).toBe('Projects');
}

async function createProject(): Promise<void> {
  await page.locator('summary', { hasText: 'Create a project' }).click();
  await page.getByLabel('Name').fill('Sky Islands');
  await clickButton('Create project');
  expect(await readHeading()).toBe('Keys in development');
}

async function readKey(): Promise<string> {
  const text = (await page.locator('.secret code').textContent()) ?? '';
  expect(text).toMatch(/^[ps]k_/);
  return text;
}

async function createKey(kind: 'publishable' | 'secret'): Promise<string> {
  await clickButton(`Create ${kind} key`);
  expect(await readHeading()).toMatch(new RegExp(`^${kind} key$`, 'i'));
  return readKey();
}

/** Checks a key with an erasure request that specifies no person and therefore starts no erasure. */
async function checkKey(url: string, secret: string): Promise<number> {
  const headers = { 'x-service-api-key': secret };
  return (await fetch(`${url}/v1/audience/data`, { method: 'DELETE', headers })).status;
}

/** Finds the person by id and requests an erasure. */
async function erasePlayer(id: string): Promise<string> {
  await page.getByRole('link', { name: 'Find a person', exact: true }).click();
  await page.getByLabel('Id', { exact: true }).fill(id);
  await clickButton('Find');
  await page.locator('summary', { hasText: 'Erase this person' }).click();
  await page.getByLabel('Type the id again').fill(id);
  await clickButton('Erase this person');
  expect(await readHeading()).toBe('Erasure requested');
  return (await page.locator('.copyable code').textContent()) ?? '';
}

/** Waits until the person is erased, then downloads the receipt from the page. */
async function downloadReceipt(erasureId: string): Promise<Record<string, unknown>> {
  await page.getByRole('link', { name: 'Erasures', exact: true }).first().click();
  const link = page.locator('tr', { has: page.getByTitle(erasureId) }).getByRole('link', { name: 'Download' });
  // Polls ClickHouse first, because reloading the page repeatedly would slow down the erasure.
  const stored = `SELECT count() FROM erasure_receipts WHERE erasure_id = '${erasureId}'`;
  await until('the person is erased', async () => Number(await world.query(stored)) > 0);
  await until('the receipt is on the page', async () => {
    await page.reload();
    return (await link.count()) === 1;
  });
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  return JSON.parse(readFileSync((await download.path()) ?? '', 'utf8'));
}

it('a new administrator can create a project, send a first event, and replace a key on every gateway', async () => {
  await becomeAdministrator();
  await createProject();
  await createKey('publishable');
  const command = await readBlock(1);
  expect(command).toContain('/v1/audience/messages');
  await page.getByRole('link', { name: 'Back to keys' }).click();
  const secret = await createKey('secret');
  await page.getByRole('link', { name: 'Back to keys' }).click();
  const keys = page.url();

  await page.getByRole('link', { name: 'Live', exact: true }).click();
  await page.locator('.counts', { hasText: /seen/i }).waitFor();
  const { stdout } = await run('bash', ['-c', command]);
  const respondedAt = performance.now();
  expect(JSON.parse(stdout)).toMatchObject({ accepted: 1 });
  const row = page.locator('.live tbody tr', { hasText: 'level_started' });
  await row.waitFor();
  const seenMs = performance.now() - respondedAt;
  expect(await row.textContent()).toMatch(/accepted|stored/);
  await row.locator('.outcome.stored').waitFor();
  expect(seenMs).toBeLessThan(LIVE_MAX_MS);

  await page.goto(keys);
  for (const url of world.gateways) expect(await checkKey(url, secret)).toBe(VALID_KEY_STATUS);
  await page.locator('summary', { hasText: 'Refresh the secret key' }).click();
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Refresh secret key' }) });
  await form.getByLabel('Type development').fill('development');
  await clickButton('Refresh secret key');
  await page.locator('.secret code').waitFor();
  const refreshedAt = performance.now();
  const delays = world.gateways.map(async (url) => {
    await until('the gateway rejects the old key', async () => (await checkKey(url, secret)) === INVALID_KEY_STATUS);
    return performance.now() - refreshedAt;
  });
  for (const ms of await Promise.all(delays)) expect(ms).toBeLessThan(REVOCATION_MAX_MS);
  const newKey = await readKey();
  for (const url of world.gateways) expect(await checkKey(url, newKey)).toBe(VALID_KEY_STATUS);
  expect(errors).toEqual([]);
});

it('the new administrator can then erase the player and download the receipt', async () => {
  const erasureId = await erasePlayer('player-1');
  const receipt = await downloadReceipt(erasureId);
  expect(receipt).toMatchObject({ erasureId, closureCount: 1, visiblyErasedAt: expect.any(String) });
  expect(JSON.stringify(receipt)).not.toContain('player-1');
  const events = await world.query("SELECT count() FROM events WHERE anonymous_id = 'player-1'");
  expect([Number(events), errors]).toEqual([0, []]);
});
