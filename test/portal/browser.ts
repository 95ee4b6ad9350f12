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
const TIMEOUT_MS = 20_000;
const SCREENSHOTS = new URL('../../.playline/test/portal/', import.meta.url);

let shared: Browser | null = null;

/** Returns the browser of this process. Restarts it after a crash. Each test file must close its contexts. */
export async function sharedBrowser(): Promise<Browser> {
  if (shared?.isConnected() !== true) shared = await openBrowser();
  return shared;
}

export async function closeContexts(browser: Browser | undefined): Promise<void> {
  for (const context of browser?.contexts() ?? []) await context.close();
}

export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly protocol: CDPSession;
  /** Script and console errors, responses with status 500 or higher, and requests to other origins. */
  readonly errors: string[];
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
  context.setDefaultTimeout(TIMEOUT_MS);
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
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  page.on('response', (response) => response.status() >= 500 && errors.push(`${response.status()} ${response.url()}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(portal.origin)) errors.push(`external request: ${request.url()}`);
  });
  return { page, context, protocol, errors };
}

export async function setViewport(page: Page, { width, scheme }: Viewport): Promise<void> {
  // Setting the size causes a new layout even if the size does not change.
  if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: SCREEN_HEIGHT });
  await page.emulateMedia({ colorScheme: scheme });
}

/** Runs in a page. Returns the start of each table row that is taller than the viewport, without open details. */
export const TALL_ROWS = `[...document.querySelectorAll('tbody tr:not(.detail)')]
  .filter((row) => row.getBoundingClientRect().height > ${SCREEN_HEIGHT})
  .map((row) => row.textContent.trim().slice(0, 60))`;

/** Takes a screenshot. Disabled by default, because a screenshot takes as long as all checks of a page together. */
export async function screenshot({ page, protocol }: Tab, name: string, { width, scheme }: Viewport): Promise<void> {
  if (process.env.PLAYLINE_TEST_PICTURES === undefined) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  const file = `${name.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'home'}-${width}-${scheme}.png`;
  const { cssContentSize } = await protocol.send('Page.getLayoutMetrics');
  const { height } = cssContentSize;
  // Content outside the viewport would otherwise cause a second layout for each screenshot.
  if (page.viewportSize()?.height !== height) await page.setViewportSize({ width, height });
  // Compression takes most of the time of a screenshot.
  const { data } = await protocol.send('Page.captureScreenshot', { optimizeForSpeed: true });
  await writeFile(new URL(file, SCREENSHOTS), Buffer.from(data, 'base64'));
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The axe rules that depend on colours. The colour schemes differ only in colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
const WITHOUT_COLOURS = Object.fromEntries(COLOUR_RULES.map((rule) => [rule, { enabled: false }]));

/** Returns options that select the rules whose result can depend on the viewport; null if there are no such rules. */
function rulesFor({ scheme, width }: Viewport): object | null {
  const isWide = width === VIEWPORTS[0]!.width;
  if (scheme === 'light') return isWide ? {} : { rules: WITHOUT_COLOURS };
  return isWide ? { runOnly: { type: 'rule', values: COLOUR_RULES } } : null;
}

/** Finds serious and critical axe violations. Colour rules run in wide viewports, all other rules in light mode. */
export async function findViolations(page: Page, viewport: Viewport = VIEWPORTS[0]!): Promise<string[]> {
  const rules = rulesFor(viewport);
  if (rules === null) return [];
  const isInjected = await page.evaluate('typeof globalThis.axe === "object"');
  if (!isInjected) await injectAxe(page);
  const options = { resultTypes: ['violations'], ...rules };
  const violations = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help} ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}

let axe: Promise<string> | null = null;

/** Uses the DevTools protocol, which is fast and can run scripts that the content security policy would block. */
async function injectAxe(page: Page): Promise<void> {
  axe ??= readFile(AXE, 'utf8');
  const protocol = await page.context().newCDPSession(page);
  await protocol.send('Runtime.evaluate', { expression: await axe });
  await protocol.detach();
}

/** Runs in a page. Records each element that receives the focus, and whether its focus is visible. */
const TRACK_FOCUS = `(() => {
  document.activeElement?.blur();
  globalThis.walk = { reached: new Map(), hasWrapped: false };
  document.addEventListener('focusin', ({ target }) => {
    if (walk.reached.has(target)) {
      walk.hasWrapped = true;
      return;
    }
    const style = getComputedStyle(target);
    const box = target.getBoundingClientRect();
    const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    walk.reached.set(target, (hasOutline || style.boxShadow !== 'none') && box.width > 0 && box.height > 0);
  });
})()`;

/** Runs in a page after `TRACK_FOCUS`. Returns the recorded `FocusWalk`. */
const READ_FOCUS_WALK = `({
  reached: walk.reached.size,
  hasWrapped: walk.hasWrapped,
  invisible: [...walk.reached].filter(([, isVisible]) => !isVisible)
    .map(([{ tagName, textContent, name }]) => tagName + ' ' + (textContent.trim() || name || '').slice(0, 40)),
  unreached: [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((element) => element.type !== 'hidden' && element.type !== 'radio' && !element.disabled
      && element.checkVisibility({ visibilityProperty: true }) && !walk.reached.has(element))
    .map((element) => element.outerHTML.slice(0, 120)),
})`;

export interface FocusWalk {
  readonly reached: number;
  readonly hasWrapped: boolean;
  /** Elements whose focus is not visible. */
  readonly invisible: readonly string[];
  readonly unreached: readonly string[];
}

const PRESSES_PER_BATCH = 30;
const PRESSES_MAX = 300;
const TAB_KEY = { type: 'rawKeyDown', key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 } as const;

/** Presses Tab until the focus returns to the first element or stops moving. */
export async function walkFocus({ page, protocol }: Tab): Promise<FocusWalk> {
  await page.evaluate(TRACK_FOCUS);
  for (let presses = PRESSES_PER_BATCH; ; presses += PRESSES_PER_BATCH) {
    // Sending key presses in batches takes a third of the time.
    await Promise.all(
      Array.from({ length: PRESSES_PER_BATCH }, () => protocol.send('Input.dispatchKeyEvent', TAB_KEY)),
    );
    const walk = (await page.evaluate(READ_FOCUS_WALK)) as FocusWalk;
    if (walk.hasWrapped || walk.reached < presses || presses >= PRESSES_MAX) return walk;
  }
}
