import { issueFirstLink } from '@playline/access-keys';
import { createOpenIdProvider } from '@playline/access-keys/open-id';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../../services/portal/src/test/open-portal.ts';
import { closeContexts, findViolations, sharedBrowser } from '../browser.ts';
import { openRealProvider, type RealProvider } from './real-provider.ts';

let browser: Browser;
let portal: TestPortal;
let provider: RealProvider;
let page: Page;
const errors: string[] = [];
const origins = new Set<string>();

beforeAll(async () => {
  [portal, provider] = await openPortalAndProvider();
  browser = await sharedBrowser();
  page = await openPage();
});
afterAll(async () => {
  await closeContexts(browser);
  await portal?.close();
  await provider?.close();
});

/** The portal requires the issuer of the provider, and the provider requires the redirect URI of the portal. */
async function openPortalAndProvider(): Promise<[TestPortal, RealProvider]> {
  const holder: { provider: ReturnType<typeof createOpenIdProvider> | null } = { provider: null };
  const formOrigins: string[] = [];
  const portal = await openPortal({
    openIdProvider: {
      label: 'Work',
      origins: formOrigins,
      authorization: (...args) => holder.provider!.authorization(...args),
      prove: (...args) => holder.provider!.prove(...args),
    },
  });
  const real = await openRealProvider(`${portal.origin}/sign-in/openid`);
  formOrigins.push(real.issuer.origin);
  holder.provider = createOpenIdProvider({
    issuer: real.issuer,
    ...real.client,
    label: 'Work',
    additionalOrigins: [],
    onFault: (code) => void errors.push(code),
  });
  return [portal, real];
}

async function openPage(): Promise<Page> {
  const opened = await (await browser.newContext()).newPage();
  opened.setDefaultTimeout(20_000);
  opened.on('pageerror', (error) => errors.push(error.message));
  opened.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  opened.on('request', (request) => origins.add(new URL(request.url()).origin));
  return opened;
}

const clickButton = (target: Page, name: string) => target.getByRole('button', { name }).click();

async function signInAtProvider(name: string): Promise<void> {
  await page.waitForURL((url) => url.origin === provider.issuer.origin);
  await page.getByLabel('Name').fill(name);
  await clickButton(page, 'Continue');
}

it('an OpenID provider can create the first administrator, renew a sign-in, and be unlinked and linked', async () => {
  const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTokens: portal.parts.oneTimeTokens });
  await page.goto(`${portal.origin}/first-sign-in?code=${code}`);
  expect(await findViolations(page)).toEqual([]);
  await page.getByLabel('Login').fill('ada@example.com');
  await page.getByLabel('Your name').fill('Ada');
  await clickButton(page, 'Continue with Work');
  await signInAtProvider('ada at work');
  await page.waitForURL(`${portal.origin}/`);
  const [account] = await portal.parts.accounts.all();
  expect(account).toMatchObject({
    login: 'ada@example.com',
    isAdministrator: true,
    passwordHash: null,
    openId: { issuer: provider.issuer.origin, subject: 'ada at work' },
  });

  await clickButton(page, 'Sign out');
  expect(await findViolations(page)).toEqual([]);
  await clickButton(page, 'Sign in with Work');
  // The provider still has a session, so it shows no form.
  await page.waitForURL(`${portal.origin}/`);

  await page.goto(`${portal.origin}/sign-in?again=1&next=/settings`);
  await clickButton(page, 'Sign in with Work');
  await signInAtProvider('ada at work');
  await page.waitForURL(`${portal.origin}/settings`);
  expect(await findViolations(page)).toEqual([]);
  await page.getByText('Set a password').click();
  await page.getByLabel('New password').fill('correct horse battery');
  await page.getByLabel('Repeat the password').fill('correct horse battery');
  await clickButton(page, 'Save password');
  await page.waitForURL(`${portal.origin}/settings?done=password`);
  await clickButton(page, 'Unlink');
  await page.waitForURL(`${portal.origin}/settings?done=unlinked`);
  await clickButton(page, 'Link Work');
  await page.waitForURL(`${portal.origin}/settings?done=linked`);
  expect((await portal.parts.accounts.all())[0]!.openId).toMatchObject({ subject: 'ada at work' });
  expect([...origins].toSorted()).toEqual([portal.origin, provider.issuer.origin].toSorted());
  expect(errors).toEqual([]);
});
