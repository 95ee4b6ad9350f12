import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { openBrowser } from '../../../packages/audience-client/src/test/open-browser.ts';
import { openGateway, type TestGateway } from '../../../services/gateway/src/test/open-gateway.ts';

export type DocsPage = Awaited<ReturnType<typeof visitDocs>>;

export interface Viewport {
  width: number;
  scheme: 'light' | 'dark';
}

export const VIEWPORTS: readonly Viewport[] = [
  { width: 1280, scheme: 'light' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
  { width: 390, scheme: 'dark' },
];

const TIMEOUT_MS = 10_000;

let browser: Browser;
let contexts: BrowserContext[] = [];

/** Opens a browser for a test file, and closes all pages after each test. Call once at the top of the file. */
export function useBrowser(): void {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const context of contexts) await context.close();
    contexts = [];
  });
}

export async function visitDocs(path: string, viewport = VIEWPORTS[0]!) {
  const gateway = await openGateway();
  return { ...(await visitPage(gateway.url, path, viewport)), gateway };
}

export async function visitPage(url: string, path: string, viewport = VIEWPORTS[0]!) {
  const { width, scheme } = viewport;
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: scheme });
  context.setDefaultTimeout(TIMEOUT_MS);
  contexts.push(context);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) faults.push(`request to another origin: ${request.url()}`);
  });
  await page.goto(url + path);
  return { page, faults };
}

export const formOf = (page: Page, summary: string): Locator => page.getByRole('form', { name: `Try: ${summary}` });

export const sendButton = (form: Locator): Locator => form.getByRole('button', { name: /^Send/ });

export const fillKey = (form: Locator, { key }: TestGateway): Promise<void> =>
  form.getByLabel(/publishable/i).fill(key);

/** Sends the form. @returns the status line of the response */
export async function sendForm(form: Locator): Promise<string> {
  await sendButton(form).click();
  return outcomeOf(form);
}

export async function outcomeOf(form: Locator): Promise<string> {
  const outcome = form.getByRole('status').filter({ hasText: /\d{3}|No response/ });
  return (await outcome.textContent()) ?? '';
}
