import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findBrowser } from '@playline/infra/machine';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { AudienceClient, AudienceClientOptions } from '../index.ts';
import { buildBundle } from './bundle.ts';

/** Globals of a page that `openSite` serves. */
export interface PageGlobals {
  client: AudienceClient;
  reports: unknown[];
}

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

/** Launches the browser that is installed on this machine. Each browser context starts with an empty profile. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === null) throw new Error('Chromium is not installed: run npm test, which installs Chromium');
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Starts a web site on a separate origin, whose pages open a client in a script. */
export async function openSite(options: AudienceClientOptions): Promise<{ url: string; close(): Promise<void> }> {
  const { code } = await buildBundle();
  const html = `<!doctype html><title>Level select</title><script type="module">
    import { openAudienceClient } from '/client.js';
    globalThis.reports = [];
    const onRejected = (report) => reports.push(report);
    globalThis.client = openAudienceClient({ ...${JSON.stringify(options)}, onRejected, onDropped: onRejected });
  </script>`;
  const server = createServer((request, response) => {
    const isScript = request.url === '/client.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? code : html);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

/** Opens a page and waits until its client is ready. */
export async function openPage(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForFunction('globalThis.client');
  return page;
}

/** Calls a page's client. `call` runs inside the page and can access only its arguments. */
export function inPage<T, A>(page: Page, call: (globals: PageGlobals, argument: A) => T, argument: A): Promise<T> {
  const source = `(${call})(globalThis, ${JSON.stringify(argument)})`;
  return page.evaluate(source) as Promise<T>;
}
