import { createDocuments } from '@playline/api-docs';
import { buildSdk } from '@playline/audience-client/sdk';
import { createHttpApp, openHttpServer } from '@playline/http';
import { expect, it } from 'vitest';
import { createDocsRoutes } from '../../app.ts';
import { createGatewayDocs } from '../../docs/source.ts';
import { expectEnvelope, KEY_HEADER, openGateway, type TestGateway } from '../../test/open-gateway.ts';

const TYPES: Record<string, string> = {
  '/docs': 'text/html; charset=utf-8',
  '/docs/reference': 'text/html; charset=utf-8',
  '/docs/errors': 'text/html; charset=utf-8',
  '/docs/errors/VALIDATION_ERROR': 'text/html; charset=utf-8',
  '/docs/rejections/INVALID_ENUM': 'text/html; charset=utf-8',
  '/docs/cookbook': 'text/html; charset=utf-8',
  '/docs/cookbook/01-active-people.sql': 'text/plain; charset=utf-8',
  '/docs/style.css': 'text/css; charset=utf-8',
  '/docs/page.js': 'text/javascript; charset=utf-8',
  '/docs/forms.js': 'text/javascript; charset=utf-8',
  '/docs/icon.svg': 'image/svg+xml',
  '/docs/messages': 'text/html; charset=utf-8',
  '/docs/quickstart': 'text/html; charset=utf-8',
  '/docs/search.json': 'application/json',
  '/docs/inter.woff2': 'font/woff2',
  '/sdk/playline-audience.js': 'text/javascript; charset=utf-8',
  '/sdk/playline-audience-client.tgz': 'application/gzip',
  '/openapi.json': 'application/json',
  '/collection.json': 'application/json',
  '/llms.txt': 'text/plain; charset=utf-8',
};

/** Reads the event time of the examples that a gateway serves. */
async function readExampleTime({ url }: Pick<TestGateway, 'url'>): Promise<number> {
  const [, time = ''] = /"eventTimestamp": "([^"]*)"/.exec(await (await fetch(`${url}/openapi.json`)).text()) ?? [];
  return Date.parse(time);
}

it.each(Object.entries(TYPES))(
  'the documentation serves %s as %s without a key, and HEAD returns the same headers',
  async (path, type) => {
    const { url } = await openGateway();
    const [page, head] = [await fetch(url + path), await fetch(url + path, { method: 'HEAD' })];
    const bytes = (await page.arrayBuffer()).byteLength;
    expect(bytes).toBeGreaterThan(0);
    expect(await head.text()).toBe('');
    for (const response of [page, head]) {
      expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
      expect(response.headers.get('content-length')).toBe(String(bytes));
      expect(response.headers.get('cache-control')).toBe('max-age=300');
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
      expect(response.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    }
  },
);

it('the content security policy of documentation pages allows only resources of the gateway', async () => {
  const { url } = await openGateway();
  const response = await fetch(`${url}/docs/reference`);
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'self'; /);
  expect(response.headers.get('content-security-policy')).not.toMatch(/unsafe|\*|http|data:/);
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  const page = await response.text();
  expect(page).not.toMatch(/<style|<script(?![^>]* src=)| style=| on\w+=/);
});

it('the documentation consists of exactly the generated documents, with examples from the last hour', async () => {
  const gateway = await openGateway();
  const time = await readExampleTime(gateway);
  expect(Math.abs(Date.now() - time)).toBeLessThan(60 * 60 * 1000);
  const settings = { publicUrl: 'https://docs.test', headerPrefix: 'x-service', downloads: buildSdk() };
  const documents = createDocuments(createGatewayDocs({ ...settings, nowMs: time }));
  const routes = gateway.routes.filter(({ method, path }) => method === 'GET' && !/^\/v1\/|\*/.test(path));
  expect(routes.map(({ path }) => path).sort()).toEqual(['/', ...documents.keys()].sort());
  for (const [path, { type, text, bytes = Buffer.from(text) }] of documents) {
    const response = await fetch(gateway.url + path);
    expect(
      [response.headers.get('content-type'), Buffer.from(await response.arrayBuffer()).equals(bytes)],
      path,
    ).toEqual([type, true]);
  }
});

it('the documentation updates its examples after an hour', async () => {
  const start = Date.parse('2026-11-21T12:00:00Z');
  let now = start;
  const settings = { publicUrl: 'https://docs.test', headerPrefix: 'x-service' };
  const routes = createDocsRoutes(settings, { monotonicMs: () => now, wallClockMs: () => now });
  const app = createHttpApp({ routes, publishableKeyHeader: KEY_HEADER, link: (code) => code });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${server.port}`;
  const readAfter = async (minutes: number) => {
    now = start + minutes * 60_000;
    return ((await readExampleTime({ url })) - start) / 60_000;
  };
  const times = [await readAfter(0), await readAfter(60), await readAfter(61), await readAfter(100)];
  await server.close();
  expect(times).toEqual([0, 0, 61, 61]);
});

it.each(['/docs/errors/NO_SUCH_CODE', '/docs/no//such/', '/docs/%2e%2e%2fapp.ts', '/docs/style.css/x', '/docs//'])(
  'the documentation returns an uncached 404 page with working links for %s',
  async (path) => {
    const { url } = await openGateway();
    const [response, head] = [await fetch(url + path), await fetch(url + path, { method: 'HEAD' })];
    const page = await response.text();
    for (const { status, headers } of [response, head]) {
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'self'; /);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    }
    for (const [, target = ''] of page.matchAll(/ (?:href|src)="([^"#]+)/g))
      expect((await fetch(new URL(target, url + path))).status, target).toBe(200);
  },
);

it('the 404 page suggests a similar page and does not repeat the requested path', async () => {
  const { url } = await openGateway();
  const page = await (await fetch(`${url}/docs/error/validation-error.html?x="<b>`)).text();
  expect(page).toContain('<a href="../../docs/errors/VALIDATION_ERROR">');
  const other = await (await fetch(`${url}/docs/sk_secret'"&amp;<b>`)).text();
  expect(other).not.toMatch(/<b>|sk_secret/);
});

it.each(['/docs', '/docs/errors', '/docs/errors/VALIDATION_ERROR'])(
  'the documentation redirects %s with a trailing slash to the page without the slash',
  async (path) => {
    const { url } = await openGateway();
    const response = await fetch(`${url}${path}/`);
    expect([response.status, response.url]).toEqual([200, url + path]);
  },
);

it('the root of the gateway leads to the documentation', async () => {
  const { url } = await openGateway();
  const response = await fetch(`${url}/`);
  expect([response.status, response.url]).toEqual([200, `${url}/docs`]);
});

it('unknown paths outside the documentation return an error envelope', async () => {
  const { url } = await openGateway();
  for (const path of ['/doc', '/docsx', '/v1/docs/'])
    await expectEnvelope(await fetch(url + path), 'RESOURCE_NOT_FOUND');
});

it('documentation paths return 404 for methods other than GET and HEAD', async () => {
  const { url } = await openGateway();
  for (const path of ['/openapi.json', '/docs/nothing'])
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      await expectEnvelope(await fetch(url + path, { method }), 'RESOURCE_NOT_FOUND');
});
