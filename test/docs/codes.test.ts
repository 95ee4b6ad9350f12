import { createDocuments, examplesOfError, examplesOfRejection, operationsOfError } from '@playline/api-docs';
import { ENVELOPE_CODES, REJECTION_CODES } from '@playline/contracts';
import { ERROR_CODES, REJECTIONS } from '@playline/errors';
import { expect, it } from 'vitest';
import { openGatewayIn, PUBLIC_URL, SOURCE } from './gateways.ts';

const documents = createDocuments(SOURCE);
const textOf = (path: string) => documents.get(path)?.text ?? '';

it('error and rejection codes are the same in the contract and the catalogue', () => {
  expect([...ERROR_CODES].sort()).toEqual([...ENVELOPE_CODES].sort());
  expect(Object.keys(REJECTIONS).sort()).toEqual([...REJECTION_CODES].sort());
});

it('every error and rejection code has exactly one page', () => {
  const pagesIn = (folder: string) =>
    [...documents.keys()].flatMap((path) => (path.startsWith(folder) ? [path.slice(folder.length)] : [])).sort();
  expect(pagesIn('/docs/errors/')).toEqual([...ERROR_CODES].sort());
  expect(pagesIn('/docs/rejections/')).toEqual([...REJECTION_CODES].sort());
});

it('the page of each code explains the cause and the fix, and the index links to the page', () => {
  const errors = ERROR_CODES.map((code) => `errors/${code}`);
  for (const path of [...errors, ...REJECTION_CODES.map((code) => `rejections/${code}`)]) {
    expect(textOf(`/docs/${path}`)).toMatch(/<h2>Cause<\/h2>\n<p>.{20,}<\/p>/);
    expect(textOf(`/docs/${path}`)).toMatch(/<h2>What to do<\/h2>\n<p>.{20,}<\/p>/);
    expect(textOf('/docs/errors')).toContain(`href="../docs/${path}"`);
  }
});

it('every code that the gateway can return has an example', () => {
  const returned = ERROR_CODES.filter((code) => operationsOfError(SOURCE, code).length > 0);
  for (const code of [...returned, 'RESOURCE_NOT_FOUND']) expect(examplesOfError(SOURCE, code), code).not.toEqual([]);
  for (const code of REJECTION_CODES) expect(examplesOfRejection(SOURCE, code), code).not.toEqual([]);
});

it('the gateway serves every document, and error responses link to the page for their error code', async () => {
  const { url, routes } = await openGatewayIn(undefined);
  expect(routes.map(({ path }) => path)).toEqual(expect.arrayContaining([...documents.keys()]));
  const { code, link } = (await (await fetch(`${url}/nowhere`)).json()) as { code: string; link: string };
  const page = await fetch(link.replace(PUBLIC_URL, url));
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(await page.text()).toContain(`<h1>${code}</h1>`);
});

it('documentation pages link only to existing documents of the service', () => {
  for (const [path, { type, text }] of documents) {
    if (!type.startsWith('text/html')) continue;
    const targets = [...text.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target = '']) => target);
    expect(targets.length).toBeGreaterThan(5);
    for (const target of targets) {
      expect(target, path).not.toMatch(/^(\w+:|\/\/)/);
      const { pathname, hash } = new URL(target, PUBLIC_URL + path);
      expect(documents.has(pathname), `${path} to ${target}`).toBe(true);
      if (hash !== '') expect(textOf(pathname), target).toContain(`id="${hash.slice(1)}"`);
    }
  }
});
