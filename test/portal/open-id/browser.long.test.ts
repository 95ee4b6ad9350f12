import { issueFirstLink } from '@playline/access-keys';
import { createOpenIdProvider } from '@playline/access-keys/open-id';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../../services/portal/src/test/open-portal.ts';
import { closeContexts, seriousIn, sharedBrowser } from '../browser.ts';
import { openRealProvider, type RealProvider } from './real-provider.ts';

let browser: Browser;
let portal: TestPortal;
let provider: RealProvider;
let page: Page;
const faults: string[] = [];
const origins = new Set<string>();

beforeAll(async () => {
  [portal, provider] = await openBoth();
  browser = await sharedBrowser();
  page = await openPage();
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
  await provider?.close();
});

/** The portal identifies the provider by its issuer, and the provider identifies the portal by its redirect address. */
async function openBoth(): Promise<[TestPortal, RealProvider]> {
  const opened: { provider: ReturnType<typeof createOpenIdProvider> | null } = { provider: null };
  const formOrigins: string[] = [];
  const portal = await openPortal({
    openIdProvider: {
      label: 'Work',
      origins: formOrigins,
      authorization: (...args) => opened.provider!.authorization(...args),
      prove: (...args) => opened.provider!.prove(...args),
    },
  });
  const real = await openRealProvider(`${portal.origin}/sign-in/openid`);
  formOrigins.push(real.issuer.origin);
  opened.provider = createOpenIdProvider({
    issuer: real.issuer,
    ...real.client,
    label: 'Work',
    alsoAt: [],
    onFault: (code) => void faults.push(code),
  });
  return [portal, real];
}

async function openPage(): Promise<Page> {
  const opened = await (await browser.newContext()).newPage();
  opened.setDefaultTimeout(20_000);
  opened.on('pageerror', (error) => faults.push(error.message));
  opened.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  opened.on('request', (request) => origins.add(new URL(request.url()).origin));
  return opened;
}

const press = (of: Page, name: string) => of.getByRole('button', { name }).click();

async function signInThere(of: Page, name: string): Promise<void> {
  await of.waitForURL((url) => url.origin === provider.issuer.origin);
  await of.getByLabel('Name').fill(name);
  await press(of, 'Continue');
}

it('a provider creates the first administrator, signs in, renews a sign-in, and can be unlinked and linked', async () => {
  const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTexts: portal.parts.oneTime });
  await page.goto(`${portal.origin}/first-sign-in?code=${code}`);
  expect(await seriousIn(page)).toEqual([]);
  await page.getByLabel('Login').fill('ada@example.com');
  await page.getByLabel('Your name').fill('Ada');
  await press(page, 'Continue with Work');
  await signInThere(page, 'ada at work');
  await page.waitForURL(`${portal.origin}/`);
  const [account] = await portal.parts.accounts.all();
  expect(account).toMatchObject({
    login: 'ada@example.com',
    isAdministrator: true,
    passwordHash: null,
    openId: { issuer: provider.issuer.origin, subject: 'ada at work' },
  });

  await press(page, 'Sign out');
  expect(await seriousIn(page)).toEqual([]);
  await press(page, 'Sign in with Work');
  // The session at the provider is still open.
  await page.waitForURL(`${portal.origin}/`);

  await page.goto(`${portal.origin}/sign-in?again=1&next=/settings`);
  await press(page, 'Sign in with Work');
  await signInThere(page, 'ada at work');
  await page.waitForURL(`${portal.origin}/settings`);
  expect(await seriousIn(page)).toEqual([]);
  await page.getByText('Set a password').click();
  await page.getByLabel('New password').fill('correct horse battery');
  await page.getByLabel('Repeat the password').fill('correct horse battery');
  await press(page, 'Save password');
  await page.waitForURL(`${portal.origin}/settings?done=password`);
  await press(page, 'Unlink');
  await page.waitForURL(`${portal.origin}/settings?done=unlinked`);
  await press(page, 'Link Work');
  await page.waitForURL(`${portal.origin}/settings?done=linked`);
  expect((await portal.parts.accounts.all())[0]!.openId).toMatchObject({ subject: 'ada at work' });
  expect([...origins].toSorted()).toEqual([portal.origin, provider.issuer.origin].toSorted());
  expect(faults).toEqual([]);
});
