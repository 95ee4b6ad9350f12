import { expect, it } from 'vitest';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

it.each(['/docs/errors/NO_SUCH_CODE', '/docs/no//such/', '/docs/%2e%2e%2fapp.ts', '/docs/style.css/x', '/docs//'])(
  'a 404 of the documentation answers %s with a page that leads on, as safe as the others and kept by nobody',
  async (path) => {
    const { url } = await openGateway();
    const [answer, head] = [await fetch(url + path), await fetch(url + path, { method: 'HEAD' })];
    const page = await answer.text();
    for (const { status, headers } of [answer, head]) {
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'self'; /);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    }
    for (const [, target = ''] of page.matchAll(/ (?:href|src)="([^"#]+)/g))
      expect((await fetch(new URL(target, url + path))).status, target).toBe(200);
  },
);

it('a 404 of the documentation names the page that was probably meant, and repeats nothing of the path', async () => {
  const { url } = await openGateway();
  const page = await (await fetch(`${url}/docs/error/validation-error.html?x="<b>`)).text();
  expect(page).toContain('<a href="../../docs/errors/VALIDATION_ERROR">');
  const odd = await (await fetch(`${url}/docs/sk_secret'"&amp;<b>`)).text();
  expect(odd).not.toMatch(/<b>|sk_secret/);
});

it.each(['/docs', '/docs/errors', '/docs/errors/VALIDATION_ERROR'])(
  'a 404 of the documentation does not come for %s with a slash behind it, which leads to the page without',
  async (path) => {
    const { url } = await openGateway();
    const answer = await fetch(`${url}${path}/`);
    expect([answer.status, answer.url]).toEqual([200, url + path]);
  },
);

it('a 404 of the documentation is an error envelope outside of the documentation', async () => {
  const { url } = await openGateway();
  for (const path of ['/', '/doc', '/docsx', '/v1/docs/'])
    await expectEnvelope(await fetch(url + path), 'RESOURCE_NOT_FOUND');
});

it('a 404 of the documentation answers any method other than GET and HEAD, on a document or not', async () => {
  const { url } = await openGateway();
  for (const path of ['/openapi.json', '/docs/nothing'])
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      await expectEnvelope(await fetch(url + path, { method }), 'RESOURCE_NOT_FOUND');
});
