import { examplesOfError, examplesOfPartCode, operationsOfError } from '@playline/api-docs';
import { ENVELOPE_CODES, REJECTION_CODES } from '@playline/contracts';
import { ERROR_CODES, REJECTIONS } from '@playline/errors';
import { describe, expect, it } from 'vitest';
import { openGatewayIn, PUBLIC_URL, SOURCE } from './gateways.ts';

describe('the codes', () => {
  it('are the same in the contract and in the catalogue', () => {
    expect([...ERROR_CODES].sort()).toEqual([...ENVELOPE_CODES].sort());
    expect(Object.keys(REJECTIONS).sort()).toEqual([...REJECTION_CODES].sort());
  });

  it('have one page each, and there is no page about anything else', async () => {
    const { routes } = await openGatewayIn(undefined);
    const below = (folder: string) =>
      routes.flatMap(({ path }) => (path.startsWith(folder) ? [path.slice(folder.length)] : [])).sort();
    expect(below('/docs/errors/')).toEqual([...ERROR_CODES].sort());
    expect(below('/docs/rejections/')).toEqual([...REJECTION_CODES].sort());
  });

  it('are each explained on their page with cause and remedy, and listed in the index', async () => {
    const { url } = await openGatewayIn(undefined);
    const index = await (await fetch(`${url}/docs`)).text();
    const errors = ERROR_CODES.map((code) => `errors/${code}`);
    for (const path of [...errors, ...REJECTION_CODES.map((code) => `rejections/${code}`)]) {
      const page = await (await fetch(`${url}/docs/${path}`)).text();
      expect(page).toMatch(/<h2>Cause<\/h2>\n<p>.{20,}<\/p>/);
      expect(page).toMatch(/<h2>What to do<\/h2>\n<p>.{20,}<\/p>/);
      expect(index).toContain(`href="./docs/${path}"`);
    }
  });

  it('have an example each: all codes that an operation or an unknown path returns, and all rejection codes', () => {
    const answered = ERROR_CODES.filter((code) => operationsOfError(SOURCE, code).length > 0);
    for (const code of [...answered, 'RESOURCE_NOT_FOUND']) expect(examplesOfError(SOURCE, code), code).not.toEqual([]);
    for (const code of REJECTION_CODES) expect(examplesOfPartCode(SOURCE, code), code).not.toEqual([]);
  });
});

it('the link in an error envelope opens the page of its code', async () => {
  const { url } = await openGatewayIn(undefined);
  const { code, link } = (await (await fetch(`${url}/nowhere`)).json()) as { code: string; link: string };
  const page = await fetch(link.replace(PUBLIC_URL, url));
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(await page.text()).toContain(`<h1>${code}</h1>`);
});

it('a page of a code links only to existing documents of the service', async () => {
  const { url, routes } = await openGatewayIn(undefined);
  for (const { path } of routes.filter(({ path }) => path.startsWith('/docs') && !path.includes('*'))) {
    const page = await fetch(url + path);
    if (!page.headers.get('content-type')?.startsWith('text/html')) continue;
    const text = await page.text();
    const targets = [...text.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target = '']) => target);
    expect(targets.length).toBeGreaterThan(5);
    for (const target of targets) {
      expect(target, path).not.toMatch(/^(\w+:|\/\/)/);
      const address = new URL(target, url + path);
      const led = await fetch(address);
      expect(led.status, `${path} to ${target}`).toBe(200);
      if (address.hash !== '') expect(await led.text(), target).toContain(`id="${address.hash.slice(1)}"`);
    }
  }
});
