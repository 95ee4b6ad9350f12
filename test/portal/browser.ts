import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { openBrowser } from '../../packages/audience-client/src/test/open-browser.ts';
import { createSessionCookie } from '../../services/portal/src/frame/cookies.ts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { VIEWPORTS, type Viewport } from '../docs/pages/visit-docs.ts';

const SECRET = Buffer.alloc(32, 1);
const SCREEN_HEIGHT = 900;
const PATIENCE_MS = 20_000;
const PICTURES = new URL('../../.playline/test/portal/', import.meta.url);

let ofProcess: Browser | null = null;

/** The browser of this process, restarted after a crash. Each test file closes its contexts. */
export async function sharedBrowser(): Promise<Browser> {
  if (ofProcess?.isConnected() !== true) ofProcess = await openBrowser();
  return ofProcess;
}

export async function closeContexts(browser: Browser | undefined): Promise<void> {
  for (const context of browser?.contexts() ?? []) await context.close();
}

export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly protocol: CDPSession;
  /** Script and console errors, answers of 500 and above, and requests to other origins. */
  readonly faults: string[];
}

export async function openTab(
  browser: Browser,
  portal: TestPortal,
  accountId: string | null,
  javaScript = true,
): Promise<Tab> {
  const context = await browser.newContext({
    javaScriptEnabled: javaScript,
    viewport: { width: 1280, height: SCREEN_HEIGHT },
  });
  context.setDefaultTimeout(PATIENCE_MS);
  if (accountId !== null) {
    const { text } = await portal.parts.sessions.create({ accountId, userAgent: 'a test', address: '127.0.0.1' });
    const [name = '', value = ''] = createSessionCookie(portal.origin, SECRET)
      .toSetCookie(text)
      .split(';')[0]!
      .split('=');
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

export async function setViewport(page: Page, { width, scheme }: Viewport): Promise<void> {
  // Setting even the same size causes a new layout.
  if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: SCREEN_HEIGHT });
  await page.emulateMedia({ colorScheme: scheme });
}

/** Runs in a page: beginnings of table rows that are higher than the viewport. */
export const TALL_ROWS = `[...document.querySelectorAll('tbody tr')]
  .filter((row) => row.getBoundingClientRect().height > ${SCREEN_HEIGHT})
  .map((row) => row.textContent.trim().slice(0, 60))`;

/** Only on request, because a picture of a page takes as long as its checks. */
export async function takePicture({ page, protocol }: Tab, name: string, { width, scheme }: Viewport): Promise<void> {
  if (process.env.PLAYLINE_TEST_PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  const file = `${name.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'home'}-${width}-${scheme}.png`;
  const { cssContentSize } = await protocol.send('Page.getLayoutMetrics');
  const { height } = cssContentSize;
  // A part outside the viewport would cost a second layout for each picture.
  if (page.viewportSize()?.height !== height) await page.setViewportSize({ width, height });
  // Compression takes most of the time of a screenshot.
  const { data } = await protocol.send('Page.captureScreenshot', { optimizeForSpeed: true });
  await writeFile(new URL(file, PICTURES), Buffer.from(data, 'base64'));
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Rules of axe that depend on colours, the only difference of the dark scheme. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
const WITHOUT_COLOURS = Object.fromEntries(COLOUR_RULES.map((rule) => [rule, { enabled: false }]));

/** Options with the rules that can differ in a viewport; null for none. */
function rulesFor({ scheme, width }: Viewport): object | null {
  const isWide = width === VIEWPORTS[0]!.width;
  if (scheme === 'light') return isWide ? {} : { rules: WITHOUT_COLOURS };
  return isWide ? { runOnly: { type: 'rule', values: COLOUR_RULES } } : null;
}

/** Serious and critical findings of axe. Colour rules run on wide viewports, other rules on light ones. */
export async function seriousIn(page: Page, viewport: Viewport = VIEWPORTS[0]!): Promise<string[]> {
  const rules = rulesFor(viewport);
  if (rules === null) return [];
  const isThere = await page.evaluate('typeof globalThis.axe === "object"');
  if (!isThere) await injectAxe(page);
  const options = { resultTypes: ['violations'], ...rules };
  const violations = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help} ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}

let axe: Promise<string> | null = null;

/** By the protocol, because the page's policy allows no other script, and half a megabyte passes the driver slowly. */
async function injectAxe(page: Page): Promise<void> {
  axe ??= readFile(AXE, 'utf8');
  const protocol = await page.context().newCDPSession(page);
  await protocol.send('Runtime.evaluate', { expression: await axe });
  await protocol.detach();
}

/** Runs in a page: from now on it notes each element that gets the focus, and whether the focus is visible there. */
const NOTE_FOCUS = `(() => {
  document.activeElement?.blur();
  globalThis.walk = { reached: new Map(), isRound: false };
  document.addEventListener('focusin', ({ target }) => {
    if (walk.reached.has(target)) {
      walk.isRound = true;
      return;
    }
    const style = getComputedStyle(target);
    const box = target.getBoundingClientRect();
    const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    walk.reached.set(target, (hasOutline || style.boxShadow !== 'none') && box.width > 0 && box.height > 0);
  });
})()`;

/** Runs in a page behind `NOTE_FOCUS`: the walk so far, as `Walk` has it. */
const WALKED = `({
  reached: walk.reached.size,
  isRound: walk.isRound,
  unseen: [...walk.reached].filter(([, isSeen]) => !isSeen)
    .map(([{ tagName, textContent, name }]) => tagName + ' ' + (textContent.trim() || name || '').slice(0, 40)),
  unreached: [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((element) => element.type !== 'hidden' && element.type !== 'radio' && !element.disabled
      && element.checkVisibility({ visibilityProperty: true }) && !walk.reached.has(element))
    .map((element) => element.outerHTML.slice(0, 120)),
})`;

export interface Walk {
  readonly reached: number;
  readonly isRound: boolean;
  /** Elements where the focus is not visible. */
  readonly unseen: readonly string[];
  readonly unreached: readonly string[];
}

const PRESSES_PER_BATCH = 30;
const PRESSES_MAX = 300;
const TAB_KEY = { type: 'rawKeyDown', key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 } as const;

/** Presses Tab until the focus is back at its start or there is no next element. */
export async function walkThrough({ page, protocol }: Tab): Promise<Walk> {
  await page.evaluate(NOTE_FOCUS);
  for (let presses = PRESSES_PER_BATCH; ; presses += PRESSES_PER_BATCH) {
    // Sent in batches, which takes a third of the time.
    await Promise.all(
      Array.from({ length: PRESSES_PER_BATCH }, () => protocol.send('Input.dispatchKeyEvent', TAB_KEY)),
    );
    const walk = (await page.evaluate(WALKED)) as Walk;
    if (walk.isRound || walk.reached < presses || presses >= PRESSES_MAX) return walk;
  }
}
