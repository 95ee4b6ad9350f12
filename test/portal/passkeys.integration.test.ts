import { issueFirstLink } from '@playline/access-keys';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { closeContexts, sharedBrowser } from './browser.ts';

let portal: TestPortal;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let protocol: CDPSession;
const errors: string[] = [];

beforeAll(async () => {
  portal = await openPortal();
  browser = await sharedBrowser();
  context = await browser.newContext();
  context.setDefaultTimeout(20_000);
  page = await context.newPage();
  page.on('pageerror', (error) => void errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  protocol = await context.newCDPSession(page);
  await protocol.send('WebAuthn.enable');
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
});

/** Adds a virtual authenticator that stores passkeys and verifies the user. */
async function addDevice(transport: 'internal' | 'usb'): Promise<string> {
  const options = {
    transport,
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    protocol: 'ctap2' as const,
    automaticPresenceSimulation: true,
  };
  return (await protocol.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
}

const button = (name: string) => page.getByRole('button', { name });

it('passkeys can create the first administrator, sign in without a login, and be added and removed', async () => {
  await addDevice('internal');
  const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTokens: portal.parts.oneTimeTokens });
  await page.goto(`${portal.origin}/first-sign-in?code=${code}`);
  await page.getByLabel('Login').fill('ada@example.com');
  await page.getByLabel('Your name').fill('Ada');
  await button('Continue with a passkey').click();
  await page.waitForURL(`${portal.origin}/`);
  const [account] = await portal.parts.accounts.all();
  expect(account).toMatchObject({ login: 'ada@example.com', isAdministrator: true, passwordHash: null });
  expect(account!.passkeys).toHaveLength(1);

  await button('Sign out').click();
  await page.waitForURL(`${portal.origin}/sign-in?done=signed-out`);
  await button('Sign in with a passkey').click();
  await page.waitForURL(`${portal.origin}/`);
  expect((await portal.parts.accounts.all())[0]!.passkeys[0]!.counter).toBeGreaterThan(0);

  await addDevice('usb');
  await page.goto(`${portal.origin}/settings`);
  await page.getByText('Add a passkey').click();
  await page.getByLabel('Passkey name').fill('Second phone');
  await button('Create passkey').click();
  await page.waitForURL(`${portal.origin}/settings?done=passkey-added`);
  await button('Remove Second phone').click();
  await page.waitForURL(`${portal.origin}/settings?done=passkey-removed`);
  expect((await portal.parts.accounts.all())[0]!.passkeys.map(({ name }) => name)).toEqual(['First passkey']);
  await button('Remove First passkey').click();
  await page.locator('.message.failed').waitFor();
  expect(errors.filter((error) => !error.includes('409'))).toEqual([]);
});
