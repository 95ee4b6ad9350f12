import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describeRejection } from '@playline/contracts';
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
const PAUSE_MS = 25;
/** Response statuses for an erasure request without a person, with a valid key and with an invalid key. */
const [VALID_KEY_STATUS, INVALID_KEY_STATUS] = [400, 401];

let world: NewcomerWorld;
let browser: Browser;
let page: Page;
let oldKey: string;
/** The command that the checklist shows. */
let command: string;
const errors: string[] = [];

beforeAll(async () => {
  world = await openNewcomerWorld();
  browser = await sharedBrowser();
  page = await openWindow();
});
afterAll(async () => {
  await closeContexts(browser);
  await world?.close();
});

/** Opens a browser without cookies. */
async function openWindow(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  context.on('weberror', (error) => errors.push(error.error().message));
  context.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  return context.newPage();
}

const clickButton = (name: string | RegExp) => page.getByRole('button', { name }).click();
const openEntry = (name: string) => page.getByRole('link', { name, exact: true }).first().click();
const openSummary = (text: string) => page.locator('summary', { hasText: text }).click();
const readHeading = (tab = page) => tab.getByRole('heading', { level: 1 }).textContent();
const readBlock = async (text: string) =>
  (await page.locator('.sample code', { hasText: text }).first().textContent()) ?? '';
const findStep = (title: string) => page.locator('.steps li', { hasText: title });
const runShell = async (script: string) => (await run('bash', ['-c', script])).stdout;

async function acceptLink(tab: Page, link: string, login: string): Promise<void> {
  await tab.goto(link);
  await tab.getByLabel('Login').fill(`${login}@example.com`);
  await tab.getByLabel('Your name').fill(login);
  await tab.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await tab.getByLabel('Repeat the password').fill(PASSWORD);
  await tab.getByRole('button', { name: 'Continue with a password' }).click();
  expect(await readHeading(tab)).toBe('Projects');
}

async function readKey(): Promise<string> {
  const text = (await page.locator('.secret code').first().textContent()) ?? '';
  expect(text).toMatch(/^[ps]k_/);
  return text;
}

/** Checks a key with an erasure request that specifies no person and therefore starts no erasure. */
async function checkKey(url: string, secret: string): Promise<number> {
  const headers = { 'x-service-api-key': secret };
  return (await fetch(`${url}/v1/audience/data`, { method: 'DELETE', headers })).status;
}

/** A game client that sends events to all gateways in turn until it is stopped. @returns the ids it sent */
function startClient(key: string) {
  const ids: string[] = [];
  const statuses = new Set<number>();
  let isStopped = false;
  const send = async () => {
    while (!isStopped) {
      const messageId = crypto.randomUUID();
      const event = { type: 'track', eventName: 'coin_collected', anonymousId: 'player-2' };
      const body = JSON.stringify({ messages: [{ ...event, messageId, eventTimestamp: new Date().toISOString() }] });
      const headers = { 'content-type': 'application/json', 'x-service-publishable-key': key };
      const gateway = world.gateways[ids.push(messageId) % world.gateways.length];
      statuses.add((await fetch(`${gateway}/v1/audience/messages`, { method: 'POST', headers, body })).status);
      await delay(PAUSE_MS);
    }
  };
  const done = send();
  const stop = async () => {
    isStopped = true;
    await done;
    return { ids, statuses: [...statuses] };
  };
  return { ids, stop };
}

const count = async (where: string) => Number(await world.query(`SELECT uniq(message_id) FROM events WHERE ${where}`));

it('the checklist leads a new administrator from a project to a key and a command, and turns green by itself', async () => {
  const link = JSON.parse(await world.operate('accounts', 'link', '--json', '--origin', world.portal)).link;
  await acceptLink(page, link, 'ada');
  await openSummary('Create a project');
  await page.getByLabel('Name').fill('Sky Islands');
  await clickButton('Create project');
  expect(await readHeading()).toBe('Overview');
  await findStep('Create a publishable key').getByRole('link', { name: 'Create a key' }).click();
  await clickButton('Create publishable key');
  oldKey = await readKey();
  await openEntry('Overview');
  command = await readBlock('/v1/audience/messages');

  const live = await page.context().newPage();
  await live.goto(page.url().replace('overview', 'live'));
  await live.locator('.counts', { hasText: 'messages shown' }).waitFor();
  expect(JSON.parse(await runShell(command))).toMatchObject({ accepted: 1 });
  const respondedAt = performance.now();
  await live.locator('.live tbody tr', { hasText: 'level_started' }).waitFor();
  expect(performance.now() - respondedAt).toBeLessThan(LIVE_MAX_MS);
  await live.locator('.live tbody tr .status.ok', { hasText: 'stored' }).waitFor();
  await live.close();

  for (const step of ['Create a publishable key', 'Send a message', 'See the first message'])
    await findStep(step).locator('.status.ok').waitFor();
  expect(errors).toEqual([]);
});

it('Live explains a rejected message with the sentence of the rule and a link to its page in the documentation', async () => {
  await openEntry('Live');
  await page.locator('.counts', { hasText: 'messages shown' }).waitFor();
  await runShell(command.replace('level_started', 'x'.repeat(300)));
  await page.locator('.live tbody tr', { hasText: 'rejected' }).getByRole('button').click();
  const rule = page.locator('.drawer .rule');
  const link = rule.getByRole('link');
  const code = (await link.textContent())?.replace('Read about ', '') ?? '';
  const sentence = describeRejection({ field: 'eventName', code }) ?? '';
  expect(sentence).toMatch(/eventName .*\d/);
  expect(await rule.textContent()).toContain(sentence);
  await link.click();
  expect(new URL(page.url()).origin).toBe(world.gateways[0]);
  expect(await readHeading()).toContain(code);
  await page.goBack();
  expect(errors).toEqual([]);
});

it('a person is found by id and erased, and the page shows the progress to the receipt by itself', async () => {
  await openEntry('Find a person');
  await page.getByLabel('Id', { exact: true }).fill('player-1');
  await clickButton('Find person');
  expect(await readHeading()).toContain('player-1');
  expect(await page.locator('.timeline', { hasText: 'level_started' }).count()).toBe(1);
  await page.getByRole('link', { name: 'Erase person…' }).click();
  await page.getByLabel('To confirm').fill('player-1');
  await clickButton('Erase person');
  expect(await readHeading()).toBe('Erasing a person');
  await page.getByRole('heading', { name: 'Person erased' }).waitFor();
  const receiptLink = page.getByRole('link', { name: 'Download receipt' });
  const [download] = await Promise.all([page.waitForEvent('download'), receiptLink.click()]);
  const receipt = JSON.parse(readFileSync((await download.path()) ?? '', 'utf8'));
  expect(receipt).toMatchObject({ closureCount: 1, visiblyErasedAt: expect.any(String) });
  expect(JSON.stringify(receipt)).not.toContain('player-1');
  expect([await count("anonymous_id = 'player-1'"), errors]).toEqual([0, []]);
});

it('a colleague accepts an invitation in another browser and sees the project', async () => {
  await openEntry('Members');
  await openSummary('Invite a member');
  await page.getByLabel('Name').fill('Grace');
  await clickButton('Create invitation');
  const link = (await page.locator('.copyable code').textContent()) ?? '';
  const colleague = await openWindow();
  await acceptLink(colleague, link, 'grace');
  await colleague.getByRole('link', { name: 'Sky Islands' }).first().click();
  expect(await readHeading(colleague)).toBe('Project settings');
  await colleague.context().close();
  await page.getByRole('link', { name: 'Back', exact: true }).click();
  expect(await page.locator('tbody tr', { hasText: 'grace@example.com' }).textContent()).toContain('developer');
  expect(errors).toEqual([]);
});

it('no event of a shipped build is lost while its key is replaced and stops in 24 hours', async () => {
  await openEntry('Keys');
  const client = startClient(oldKey);
  await until('the client sends', () => client.ids.length > 20);
  await page.getByRole('checkbox', { name: 'Show details of row 1' }).press('Space');
  await openSummary('Refresh the key');
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Refresh publishable key' }) });
  await form.getByLabel('Name of the new key').fill('iOS 2.4');
  await form.getByLabel('The old key stops').selectOption({ label: 'in 24 hours' });
  await clickButton('Refresh publishable key');
  const newKey = await readKey();
  expect(newKey).not.toBe(oldKey);
  expect(await page.locator('.secret').textContent()).toContain('The old key stops on');
  const newClient = startClient(newKey);
  const sentBefore = client.ids.length;
  const isEnough = () => Math.min(client.ids.length - sentBefore, newClient.ids.length) > 80;
  await until('both clients have sent events for two seconds', isEnough);
  const [before, after] = [await client.stop(), await newClient.stop()];
  expect([before.statuses, after.statuses]).toEqual([[200], [200]]);
  const sent = before.ids.length + after.ids.length;
  await until('every event is stored', async () => (await count("anonymous_id = 'player-2'")) === sent);
  await page.getByRole('link', { name: 'Back to keys' }).click();
  expect(await page.locator('tbody tr', { hasText: /stops in/ }).count()).toBe(1);
  expect(errors).toEqual([]);
});

it('the SQL of the Connect page returns the events of the environment with new credentials', async () => {
  await openEntry('Connect');
  await page.getByLabel('What are they for?').fill('A notebook');
  await clickButton('Create credentials');
  const script = [await readBlock('export CLICKHOUSE_PASSWORD'), await readBlock('curl')].join('\n');
  const stored = await count("event_name = 'coin_collected'");
  expect(await runShell(script)).toBe(`event_name\tevents\ncoin_collected\t${stored}\n`);
  expect(errors).toEqual([]);
});

it('every gateway rejects a replaced secret key within a second', async () => {
  await openEntry('Keys');
  await clickButton('Create secret key');
  const secret = await readKey();
  await page.getByRole('link', { name: 'Back to keys' }).click();
  for (const url of world.gateways) expect(await checkKey(url, secret)).toBe(VALID_KEY_STATUS);
  await openSummary('Refresh the secret key');
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Refresh secret key' }) });
  await form.getByLabel('Type development').fill('development');
  await clickButton('Refresh secret key');
  await page.locator('.secret code').first().waitFor();
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
