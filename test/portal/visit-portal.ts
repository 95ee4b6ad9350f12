import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { createSessionCookie } from '../../services/portal/src/frame/cookies.ts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { LOOKS, type Look } from '../docs/pages/visit-docs.ts';

/** The same secret that `openPortal` gives the portal. */
const SECRET = Buffer.alloc(32, 1);
/** Longest wait for any action on a page of a loopback service. */
const PATIENCE_MS = 20_000;
/** Screenshots for people to look at. They are not committed. */
export const PICTURES = new URL('../../.playline/test/portal/', import.meta.url);

/** A tab with a signed-in user, and the errors in it. */
export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** For calls that the driver lacks. */
  readonly protocol: CDPSession;
  /** Script and console errors, answers of 500 and above, and requests to other origins. */
  readonly faults: string[];
}

export interface TabOptions {
  readonly portal: TestPortal;
  /** Null: not signed in. */
  readonly accountId: string | null;
  readonly javaScript?: boolean;
}

/** Opens a new browser profile with a signed-in user. */
export async function openTab(browser: Browser, options: TabOptions): Promise<Tab> {
  const { portal, accountId, javaScript = true } = options;
  const context = await browser.newContext({ javaScriptEnabled: javaScript, viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(PATIENCE_MS);
  if (accountId !== null) {
    const { text } = await portal.parts.sessions.create({ accountId, userAgent: 'a test', address: '127.0.0.1' });
    const [name = '', value = ''] = createSessionCookie(portal.origin, SECRET).give(text).split(';')[0]!.split('=');
    await context.addCookies([{ name, value, url: portal.origin }]);
  }
  const page = await context.newPage();
  const protocol = await context.newCDPSession(page);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  page.on('response', (answer) => answer.status() >= 500 && faults.push(`${answer.status()} ${answer.url()}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(portal.origin)) faults.push(`outside: ${request.url()}`);
  });
  return { page, context, protocol, faults };
}

/** A pool of tabs of one account, because a new profile with its first page takes longer than a visit. */
export interface Tabs {
  /** Lends a tab, empty and without faults, as soon as one is free. */
  visit<T>(work: (tab: Tab) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Enough to keep two processors busy: while one page is drawn, another is requested. */
const TABS = 3;

export async function openTabs(browser: Browser, options: TabOptions): Promise<Tabs> {
  const tabs = await Promise.all(Array.from({ length: TABS }, () => openTab(browser, options)));
  const free = [...tabs];
  const waiting: (() => void)[] = [];
  return {
    visit: async (work) => {
      while (free.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      const tab = free.pop()!;
      try {
        // Late errors of the previous page must not count for the next one. The page is one of the portal, because an
        // empty page would start a new process each time.
        await tab.page.goto(`${options.portal.origin}/sign-out`);
        await tab.page.unrouteAll();
        await lookAt(tab.page, LOOKS[0]!);
        tab.faults.length = 0;
        return await work(tab);
      } finally {
        free.push(tab);
        waiting.shift()?.();
      }
    },
    close: async () => {
      for (const { context } of tabs) await context.close();
    },
  };
}

/** Changes the width and the colour scheme of a page without reloading it. */
export async function lookAt(page: Page, { width, scheme }: Look): Promise<void> {
  // Setting the size makes the browser lay everything out again, even when it does not change.
  if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
}

/** Saves a screenshot of the whole page. */
export async function takePicture({ protocol }: Tab, name: string, { width, scheme }: Look): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  const file = `${name.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'home'}-${width}-${scheme}.png`;
  const { cssContentSize } = await protocol.send('Page.getLayoutMetrics');
  const { data } = await protocol.send('Page.captureScreenshot', {
    clip: { ...cssContentSize, scale: 1 },
    captureBeyondViewport: true,
    // Compression takes most of the time of a screenshot.
    optimizeForSpeed: true,
  });
  await writeFile(new URL(file, PICTURES), Buffer.from(data, 'base64'));
}

export { LOOKS };

/** One finding of axe. */
interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Rules of axe whose outcome depends on colours: the dark scheme of the pages changes nothing else. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** The rules that a look can add something to: null for none, as a narrow page has the colours of a wide one. */
function rulesFor({ scheme, width }: Look): object | null {
  if (scheme === 'light') return {};
  return width === LOOKS[0]!.width ? { runOnly: { type: 'rule', values: COLOUR_RULES } } : null;
}

/**
 * What axe finds serious or critical on a page as it is shown now.
 * @param look with which the page is shown: all rules judge light pages, those about colours judge wide dark ones
 */
export async function seriousIn(page: Page, look: Look = LOOKS[0]!): Promise<string[]> {
  const rules = rulesFor(look);
  if (rules === null) return [];
  const isThere = await page.evaluate('typeof globalThis.axe === "object"');
  // Injected by the driver, because the page's policy allows no other script.
  if (!isThere) await page.evaluate(await readAxe());
  const options = { resultTypes: ['violations'], ...rules };
  const violations = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help} ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}

let axe: Promise<string> | null = null;

function readAxe(): Promise<string> {
  axe ??= import('node:fs/promises').then(({ readFile }) => readFile(AXE, 'utf8'));
  return axe;
}

/** Runs in a page while a test presses Tab: where the focus is, and whether it is visible. */
export const FOCUS = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return null;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  if (element.dataset.walked !== undefined) return { name: 'again', isSeen: true };
  element.dataset.walked = '';
  const name = element.tagName + ' ' + (element.textContent.trim() || element.getAttribute('name') || '').slice(0, 40);
  return { name, isSeen: (hasOutline || style.boxShadow !== 'none') && box.width > 0 && box.height > 0 };
})()`;

/** Runs in a page: controls that Tab has not reached. */
export const UNREACHED = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((element) => element.type !== 'hidden' && !element.disabled && element.checkVisibility({ visibilityProperty: true })
    && element.dataset.walked === undefined && element.type !== 'radio')
  .map((element) => element.outerHTML.slice(0, 120))`;
