import { linkCollection, type ProjectRecord, unlinkCollection } from '@playline/access-keys';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ActivityLine, TokenLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';
import { toAmount } from './page.ts';

const NOW_MS = Date.parse('2026-11-01T10:00:00Z');
const AUTHOR = { changedBy: 'a test', requestId: 'r' };
const HASH = `0x${'dd'.repeat(32)}`;
const [SELLER, BUYER] = [`0x${'ab'.repeat(20)}`, `0x${'cd'.repeat(20)}`];

const activities: Record<string, ActivityLine[]> = {};
const tokens: Record<string, TokenLine> = {};
const portal = usePortal({ reads: createMemoryReads({ activities, tokens }) });

let addresses = 0;
const createAddress = () => `0x${(++addresses).toString(16).padStart(40, '0')}`;
let created = 0;
const createId = () => `0b1f7a52-6c3e-4d8a-9f10-${String(++created).padStart(12, '0')}`;

const createActivity = (contractAddress: string, overrides: Partial<ActivityLine> = {}): ActivityLine => ({
  chain: 'demo-chain',
  contractAddress,
  id: createId(),
  type: 'mint',
  from: '',
  to: BUYER,
  payment: null,
  updatedUs: NOW_MS * 1000,
  updatedMs: NOW_MS,
  indexedMs: NOW_MS - 1_000,
  assets: [{ contractAddress, tokenId: '4711', amount: '1' }],
  transactionHash: HASH,
  blockNumber: '18204511',
  ...overrides,
});

async function openProject() {
  const project = await portal.addProject('Game');
  const path = `/projects/${project.id}/environments/development/activities`;
  return { project, path, browser: await portal.signIn({ project, role: 'analyst' }) };
}

/** Links a contract and returns a function that sets its activities. */
async function link(project: ProjectRecord, { name = 'Swords', environment = 'development' } = {}) {
  const contractAddress = createAddress();
  const environmentId = `${project.id}-${environment}`;
  const store = portal.parts.collections.storeFor(AUTHOR);
  const contract = { chain: 'demo-chain', contractAddress };
  await linkCollection({ store }, { ...contract, projectId: project.id, environmentId, name });
  const setActivities = (...lines: ActivityLine[]) => {
    activities[`demo-chain ${contractAddress}`] = lines;
  };
  return { contractAddress, setActivities, id: `demo-chain:${contractAddress}` };
}

const readIds = (text: string) => [...text.matchAll(/<code>(0b1f7a52[\w-]+)<\/code>/g)].map(([, id]) => id);

it('the empty activities page explains how to link a contract, check the chain and clear the filter', async () => {
  const { browser, project, path } = await openProject();
  expect((await browser.get(path)).text).toContain(`href="${path.replace('activities', 'collections')}"`);
  const { contractAddress, setActivities } = await link(project);
  const { text } = await browser.get(path);
  for (const expected of ['No activities yet', 'demo-chain', 'npm run status']) expect(text).toContain(expected);
  setActivities(createActivity(contractAddress));
  expect((await browser.get(`${path}?kind=sale`)).text).toContain('No matching activities');
});

it('the activities page shows the type, token, parties, price and transaction, with copy buttons', async () => {
  const { browser, project, path } = await openProject();
  const { contractAddress, setActivities } = await link(project);
  const payment = { contractAddress: '', symbol: 'ETH', amount: '105' };
  setActivities(createActivity(contractAddress, { type: 'sale', from: SELLER, payment }));
  const { text } = await browser.get(path);
  for (const expected of ['Swords', 'sale', '105', 'ETH', '18204511']) expect(text).toContain(expected);
  for (const copied of [contractAddress, '4711', SELLER, BUYER, HASH]) expect(text).toContain(`data-copy="${copied}"`);
  expect(text).toContain('<time datetime="2026-11-01T10:00:00.000Z"');
});

it('the activities page shows token amounts in whole units', async () => {
  const { browser, project, path } = await openProject();
  const { contractAddress, setActivities } = await link(project);
  const contract = { chain: 'demo-chain', contractAddress };
  tokens[`demo-chain ${contractAddress}`] = { ...contract, name: 'Gold', symbol: 'GLD', decimals: 18 };
  const assets = [{ contractAddress, tokenId: '', amount: '2500000000000000000' }];
  setActivities(createActivity(contractAddress, { type: 'transfer', assets }));
  expect((await browser.get(path)).text).toContain('2.5 GLD (Gold)');
});

it('the activities page filters by collection, type, token and time, and ignores unknown values', async () => {
  const { browser, project, path } = await openProject();
  const [swords, shields] = [await link(project), await link(project, { name: 'Shields' })];
  const [sword, shield] = [
    createActivity(swords.contractAddress),
    createActivity(shields.contractAddress, {
      type: 'burn',
      indexedMs: NOW_MS - 86_400_000,
      updatedUs: NOW_MS * 1000 - 1,
      assets: [{ contractAddress: shields.contractAddress, tokenId: '47', amount: '1' }],
    }),
  ];
  swords.setActivities(sword);
  shields.setActivities(shield);
  const shown = async (query: string) => readIds((await browser.get(`${path}?${query}`)).text);
  expect(await shown('')).toEqual([sword.id, shield.id]);
  for (const query of [`collection=${shields.id}`, 'kind=burn', 'token=47', 'until=2026-11-01+00:00'])
    expect([query, await shown(query)]).toEqual([query, [shield.id]]);
  for (const query of [`collection=${swords.id}`, 'kind=mint', 'token=4711', 'since=2026-11-01+00:00'])
    expect([query, await shown(query)]).toEqual([query, [sword.id]]);
  expect(await shown('collection=none&kind=none')).toEqual([sword.id, shield.id]);
  for (const invalid of ['since=yesterday', 'token=x', 'since=2026-11-02T00:00&until=2026-11-01T00:00'])
    expect((await browser.get(`${path}?${invalid}`)).text).toContain('role="alert"');
});

it('the activities page continues after a search that timed out between two activities', async () => {
  const { browser, project, path } = await openProject();
  const { contractAddress, setActivities } = await link(project);
  setActivities(...[0, 1, 2].map((index) => createActivity(contractAddress, { updatedUs: NOW_MS * 1000 - index })));
  const all = readIds((await browser.get(path)).text);
  expect(readIds((await browser.get(`${path}?after=${NOW_MS * 1000 - 1}.`)).text)).toEqual(all.slice(2));
});

it('the activities pages show each activity once, even if many activities have the same timestamp', async () => {
  const { browser, project, path } = await openProject();
  const { contractAddress, setActivities } = await link(project);
  const lines = Array.from({ length: 350 }, (_, index) =>
    createActivity(contractAddress, { updatedUs: NOW_MS * 1000 - Math.floor(index / 120) }),
  );
  setActivities(...lines, createActivity(contractAddress, { type: 'burn' }));
  const seen: (string | undefined)[] = [];
  for (let next: string | undefined = `${path}?kind=mint`; next !== undefined; ) {
    const { text } = await browser.get(next);
    seen.push(...readIds(text));
    next = /href="([^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([seen.length, new Set(seen).size]).toEqual([350, 350]);
});

it('the activities export contains each matching activity once', async () => {
  const { browser, project, path } = await openProject();
  const { contractAddress, setActivities } = await link(project);
  const make = (_: unknown, index: number) => createActivity(contractAddress, index % 2 === 0 ? {} : { type: 'burn' });
  setActivities(...Array.from({ length: 5_000 }, make));
  const file = /href="([^"]*as=csv[^"]*)"/.exec((await browser.get(`${path}?kind=mint`)).text)?.[1];
  const { text, headers } = await browser.get(file!.replaceAll('&amp;', '&'));
  expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['text/csv; charset=utf-8', 'no-store']);
  const ids = [...text.matchAll(/"(0b1f7a52[\w-]+)"/g)].map(([, id]) => id);
  expect([ids.length, new Set(ids).size]).toEqual([2_500, 2_500]);
});

it('the activities page shows only activities of contracts that are linked to the environment', async () => {
  const [ownProject, otherProject] = [await openProject(), await openProject()];
  // The names contain a space, which the random token of a form cannot contain.
  const [inOtherProject, inProduction, unlinked, linked] = [
    await link(otherProject.project, { name: 'Old axes' }),
    await link(ownProject.project, { name: 'Old bows', environment: 'production' }),
    await link(ownProject.project, { name: 'Old clubs' }),
    await link(ownProject.project, { name: 'Linked' }),
  ];
  const store = portal.parts.collections.storeFor(AUTHOR);
  const contract = { chain: 'demo-chain', contractAddress: unlinked.contractAddress };
  await unlinkCollection({ store }, { ...contract, projectId: ownProject.project.id });
  const line = createActivity(linked.contractAddress);
  for (const each of [inOtherProject, inProduction, unlinked]) each.setActivities(createActivity(each.contractAddress));
  linked.setActivities(line);
  for (const id of [inOtherProject.id, inProduction.id, unlinked.id, '', '*']) {
    for (const format of ['', '&as=csv']) {
      const { text } = await ownProject.browser.get(`${ownProject.path}?collection=${encodeURIComponent(id)}${format}`);
      expect(text).toContain(line.id);
      expect(text).not.toMatch(/Old (axes|bows|clubs)/);
      for (const each of [inOtherProject, inProduction, unlinked]) expect(text).not.toContain(each.contractAddress);
    }
  }
});

it.each([
  ['2500000000000000000', 18, '2.5'],
  ['1', 18, '0.000000000000000001'],
  ['100', 2, '1'],
  ['7', 0, '7'],
  ['7', null, '7'],
  ['<b>', 2, '<b>'],
] as const)('toAmount formats %s with %s decimals as %s', (digits, decimals, shown) => {
  expect(toAmount(digits, decimals)).toBe(shown);
});

it('toAmount preserves the value of every amount', () => {
  const property = fc.property(fc.bigInt({ min: 0n, max: 10n ** 78n - 1n }), fc.nat(255), (amount, decimals) => {
    const [whole = '', fraction = ''] = toAmount(String(amount), decimals).split('.');
    expect(BigInt(whole + fraction.padEnd(decimals, '0'))).toBe(amount);
    expect(fraction).not.toMatch(/0$/);
  });
  fc.assert(property);
});
