import { fileURLToPath } from 'node:url';
import { createDocuments } from '@playline/api-docs';
import { expect, it } from 'vitest';
import { createChainDocs } from '../../services/chain-api/src/docs/source.ts';
import { readTree } from '../house/tree.ts';
import { PUBLIC_URL, SOURCE } from './gateways.ts';

const chains = [{ name: 'demo-chain', id: 'eip155:31337' }];
const chain = createDocuments(createChainDocs({ publicUrl: PUBLIC_URL, headerPrefix: 'x-service', chains }));
const events = createDocuments(SOURCE);
const sources = [...readTree(fileURLToPath(new URL('../..', import.meta.url)))].filter(
  ([path]) => /^services\/portal\/src\/(pages|frame)\/.*\.ts$/.test(path) && !path.endsWith('.test.ts'),
);

it('links from the portal to the documentation lead to existing pages and headings', () => {
  const links = sources.flatMap(([, text]) =>
    [...text.matchAll(/['"`](\/docs(?!\$)[^'"`]*)['"`]/g)].map(([, link]) => link!),
  );
  expect(links.length).toBeGreaterThan(15);
  for (const link of new Set(links)) {
    const { pathname, hash } = new URL(link, PUBLIC_URL);
    const isChain = pathname.startsWith('/docs/chain');
    const text = (isChain ? chain : events).get(pathname.replace('/docs/chain', '/docs'))?.text;
    expect(text, link).toContain(hash === '' ? '<h1>' : `id="${hash.slice(1)}"`);
  }
});
