import { expect, it } from 'vitest';
import type { MintLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const NOW_MS = Date.parse('2026-11-01T10:00:00Z');
const [CONTRACT, OWNER, SIGNER] = ['aa', 'bb', 'cc'].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const HASH = `0x${'dd'.repeat(32)}`;

const createMint = (overrides: Partial<MintLine>): MintLine => ({
  chain: 'demo-chain',
  contractAddress: CONTRACT,
  referenceId: 'hero-1',
  requestedMs: NOW_MS,
  changedMs: NOW_MS,
  signerAddress: SIGNER,
  ownerAddress: OWNER,
  tokenId: null,
  amount: null,
  status: 'pending',
  stage: 'accepted',
  reason: null,
  error: null,
  transactionHash: null,
  traceId: 't',
  ...overrides,
});

const mints: Record<string, MintLine[]> = {};
const portal = usePortal({ reads: createMemoryReads({ mints }) });

async function openProject() {
  const project = await portal.addProject('Game');
  const environment = project.environments.find(({ name }) => name === 'development')!;
  const path = `/projects/${project.id}/environments/development/mints`;
  return { environment, path, browser: await portal.signIn({ project, role: 'analyst' }) };
}

it('the mints page shows the status, transaction and reason of each mint', async () => {
  const { browser, environment, path } = await openProject();
  expect((await browser.get(path)).text).toContain('No mints in 90 days');
  mints[environment.id] = [
    createMint({ stage: 'waiting', reason: 'the signer lacks MINTER_ROLE' }),
    createMint({ referenceId: 'hero-2', status: 'succeeded', stage: 'settled', tokenId: '7', transactionHash: HASH }),
    createMint({ referenceId: 'hero-3', status: 'failed', stage: 'settled', error: 'TokenAlreadyMinted(7)' }),
  ];
  const { text } = await browser.get(path);
  for (const expected of ['pending, waiting: the signer lacks MINTER_ROLE', 'succeeded', HASH, OWNER, CONTRACT])
    expect(text).toContain(expected);
  expect(text).toContain('failed: TokenAlreadyMinted(7)');
});

it('the mints page filters by status and ignores an unknown status', async () => {
  const { browser, environment, path } = await openProject();
  mints[environment.id] = [createMint({}), createMint({ referenceId: 'hero-2', status: 'failed', error: 'no' })];
  const readReferences = async (query: string) =>
    [...(await browser.get(path + query)).text.matchAll(/<code>(hero-\d)/g)].map(([, id]) => id);
  expect(await readReferences('?status=failed')).toEqual(['hero-2']);
  expect(await readReferences('?status=burnt')).toEqual(['hero-2', 'hero-1']);
  expect((await browser.get(`${path}?status=succeeded`)).text).toContain('No succeeded mints');
});

it('the mints export contains each mint with the chosen status once', async () => {
  const { browser, environment, path } = await openProject();
  mints[environment.id] = Array.from({ length: 300 }, (_, index) =>
    createMint({ referenceId: `hero-${index}`, status: index % 3 === 0 ? 'failed' : 'pending' }),
  );
  const { text, headers } = await browser.get(`${path}?status=failed&as=csv`);
  expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['text/csv; charset=utf-8', 'no-store']);
  const ids = [...text.matchAll(/"hero-(\d+)"/g)].map(([, number]) => Number(number));
  expect([ids.length, new Set(ids).size, ids.every((number) => number % 3 === 0)]).toEqual([100, 100, true]);
  expect((await browser.get(path)).text).toContain('as=csv');
});
