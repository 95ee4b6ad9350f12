import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { openBrowser } from '../../../packages/audience-client/src/test/open-browser.ts';
import { openGateway, type TestGateway } from '../../../services/gateway/src/test/open-gateway.ts';

/** A page in a real browser, and the errors in it. */
export interface VisitedPage {
  readonly page: Page;
  /** Console and script errors, failed requests, and requests to other origins. */
  readonly faults: string[];
}

/** A page of a gateway's documentation. */
export interface DocsPage extends VisitedPage {
  readonly gateway: TestGateway;
}

export interface Look {
  /** CSS pixels. */
  width: number;
  scheme: 'light' | 'dark';
}

/** The supported screens: desktop and phone, light and dark. */
export const LOOKS: readonly Look[] = [
  { width: 1280, scheme: 'light' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
  { width: 390, scheme: 'dark' },
];

/** Longest wait for any action on a page of a loopback service. */
const PATIENCE_MS = 10_000;

let browser: Browser;
let contexts: BrowserContext[] = [];

/** Call it once at the top of a test file. It opens a browser, and closes every page after its test. */
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

/** Opens a page of a given or new gateway in a new browser profile. */
export async function visitDocs(path: string, look: Look, known?: TestGateway): Promise<DocsPage> {
  const gateway = known ?? (await openGateway());
  return { ...(await visitPage(gateway.url, path, look)), gateway };
}

/** Opens a page of the service at an address in a new browser profile. */
export async function visitPage(url: string, path: string, { width, scheme }: Look): Promise<VisitedPage> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: scheme });
  context.setDefaultTimeout(PATIENCE_MS);
  contexts.push(context);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) faults.push(`outside: ${request.url()}`);
  });
  await page.goto(url + path);
  return { page, faults };
}

/** The form of an operation, by its summary. */
export const formOf = (page: Page, summary: string): Locator => page.getByRole('form', { name: `Try: ${summary}` });

/** Sends a form. Returns what it shows of the answer, once that has arrived. */
export async function sendForm(form: Locator): Promise<string> {
  await form.getByRole('button', { name: /^Send/ }).click();
  return outcomeOf(form);
}

/** What a form shows of the answer. */
export async function outcomeOf(form: Locator): Promise<string> {
  const outcome = form.getByRole('status').filter({ hasText: /\d{3}|No answer/ });
  return (await outcome.textContent()) ?? '';
}
