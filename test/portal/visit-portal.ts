import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { createSessionCookie } from '../../services/portal/src/frame/cookies.ts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { LOOKS, type Look } from '../docs/pages/visit-docs.ts';

/** As `openPortal` gives it to the portal. */
const SECRET = Buffer.alloc(32, 1);
/** How long a page of a loopback service may take for anything. */
const PATIENCE_MS = 20_000;
/** Kept for people to look at; not in the repository. */
export const PICTURES = new URL('../../.playline/test/portal/', import.meta.url);

/** A tab in which somebody has signed in, and what went wrong in it. */
export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the driver has no call for. */
  readonly protocol: CDPSession;
  /** Errors of scripts and of the console, answers of 500, and requests to any other address. */
  readonly faults: string[];
}

export interface TabOptions {
  readonly portal: TestPortal;
  /** Null: nobody. */
  readonly accountId: string | null;
  readonly javaScript?: boolean;
}

/** Opens a profile of its own in which somebody is signed in. */
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

/** Tabs of one account that are lent from visit to visit: a profile and its first page take longer than a page. */
export interface Tabs {
  /** Lends a tab, empty and without faults, as soon as one is free. */
  visit<T>(work: (tab: Tab) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** As many at a time keep two processors busy: while one page is drawn, another is asked for. */
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
        // What the page before it still says is not a fault of the next one. An empty page would cost a new process each time.
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

/** Gives a page another screen, by day or by night, without asking for it again. */
export async function lookAt(page: Page, { width, scheme }: Look): Promise<void> {
  // The browser lays everything out anew for each of them, also where nothing changes.
  if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
}

/** Keeps a picture of the whole page, where PLAYLINE_TEST_PICTURES asks for it: no test reads it, and it takes as long as axe. */
export async function takePicture({ protocol }: Tab, name: string, { width, scheme }: Look): Promise<void> {
  if (process.env.PLAYLINE_TEST_PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  const file = `${name.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'home'}-${width}-${scheme}.png`;
  const { cssContentSize } = await protocol.send('Page.getLayoutMetrics');
  const { data } = await protocol.send('Page.captureScreenshot', {
    clip: { ...cssContentSize, scale: 1 },
    captureBeyondViewport: true,
    // Most of the time of a picture goes into making its file small.
    optimizeForSpeed: true,
  });
  await writeFile(new URL(file, PICTURES), Buffer.from(data, 'base64'));
}

export { LOOKS };

/** One thing that axe finds wrong. */
interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Rules of axe whose outcome depends on colours: the dark scheme of the pages changes nothing else. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * What axe finds serious or critical on a page as it is shown now.
 * @param scheme by night only the rules about colours are judged, since the page has been judged by day
 */
export async function seriousIn(page: Page, scheme: Look['scheme'] = 'light'): Promise<string[]> {
  const isThere = await page.evaluate('typeof globalThis.axe === "object"');
  // By the driver: the page's policy lets no script in.
  if (!isThere) await page.evaluate(await readAxe());
  const options = {
    resultTypes: ['violations'],
    ...(scheme === 'dark' ? { runOnly: { type: 'rule', values: COLOUR_RULES } } : {}),
  };
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

/**
 * Runs in a page that is being walked by Tab: where the focus is, and whether a person sees it there.
 */
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

/** Runs in a page: what a person can press or type into, and Tab has not reached. */
export const UNREACHED = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((element) => element.type !== 'hidden' && !element.disabled && element.checkVisibility({ visibilityProperty: true })
    && element.dataset.walked === undefined && element.type !== 'radio')
  .map((element) => element.outerHTML.slice(0, 120))`;
