import type { Role } from '@playline/access-keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MintSigner } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

let portal: TestPortal;
const mintSigners: Record<string, MintSigner[]> = {};
beforeAll(async () => {
  portal = await openPortal({ reads: createMemoryReads({ mintSigners }) });
});
afterAll(() => portal.close());

let contracts = 0;

async function openProject(role: Role = 'owner') {
  const project = await portal.addProject('Game');
  const pathOf = (environment: string) => `/projects/${project.id}/environments/${environment}/collections`;
  const contract = `0x${(++contracts).toString(16).toUpperCase().padStart(40, 'A')}`;
  const wanted = { chain: 'demo-chain', contract, name: 'Swords' };
  return { project, path: pathOf('production'), pathOf, browser: await portal.signIn({ project, role }), wanted };
}

const one = async (contract: string) =>
  (await portal.parts.collections.all()).find(({ contractAddress }) => contractAddress === contract.toLowerCase());

describe('the page of collections', () => {
  it('an owner links, renames, moves and unlinks a contract and links it again', async () => {
    const { browser, path, pathOf, project, wanted } = await openProject();
    const linked = await browser.submit(path, 'link', wanted);
    expect([linked.status, linked.headers.get('location')]).toEqual([303, `${path}?done=linked`]);
    const address = wanted.contract.toLowerCase();
    const { text } = await browser.get(`${path}?done=linked`);
    expect([text.includes(`data-copy="${address}"`), text.includes('Contract linked.')]).toEqual([true, true]);
    await browser.submit(path, 'rename', { name: 'Axes' });
    await browser.submit(pathOf('development'), 'relink');
    expect(await one(address)).toMatchObject({ name: 'Axes', environmentId: `${project.id}-development` });
    expect((await browser.submit(pathOf('development'), 'unlink', { confirm: 'yes' })).status).toBe(400);
    await browser.submit(pathOf('development'), 'unlink', { confirm: 'unlink' });
    expect(await one(address)).toMatchObject({ state: 'unlinked' });
    await browser.submit(path, 'relink');
    const [account] = (await portal.parts.accounts.all()).filter(({ roles }) => roles[0]?.projectId === project.id);
    const owner = { projectId: project.id, environmentId: `${project.id}-production`, changedBy: account!.id };
    expect(await one(address)).toMatchObject({ ...owner, state: 'linked', name: 'Axes', revision: 5 });
  });

  it('a form with the contract of another project is refused and shows no detail', async () => {
    const [own, other] = [await openProject(), await openProject()];
    await other.browser.submit(other.path, 'link', { ...other.wanted, name: 'Secret axe' });
    const refused = await own.browser.submit(own.path, 'link', other.wanted);
    expect(refused.status).toBe(409);
    expect(refused.text).not.toMatch(new RegExp(`${other.project.id}|Secret axe`));
    await own.browser.submit(own.path, 'link', own.wanted);
    const values = { contract: other.wanted.contract, name: 'Mine', confirm: 'unlink' };
    for (const action of ['rename', 'unlink'])
      expect((await own.browser.submit(own.path, action, values)).status).toBe(404);
    expect(await one(other.wanted.contract)).toMatchObject({ name: 'Secret axe', state: 'linked', revision: 1 });
  });

  it('developers link and rename, owners also unlink, and analysts have no forms', async () => {
    const { project, path, browser, wanted } = await openProject('owner');
    await browser.submit(path, 'link', wanted);
    const formsOf = async (role: Role) => {
      const other = await portal.signIn({ project, role });
      const { text } = await other.get(path);
      return ['link', 'rename', 'unlink'].filter((action) => other.formOf(text, action) !== null);
    };
    expect(await formsOf('owner')).toEqual(['link', 'rename', 'unlink']);
    expect(await formsOf('developer')).toEqual(['link', 'rename']);
    expect(await formsOf('analyst')).toEqual([]);
    const developer = await portal.signIn({ project, role: 'developer' });
    const form = developer.formOf((await developer.get(path)).text, 'rename')!;
    form.fields.set('form', 'unlink');
    form.fields.set('confirm', 'unlink');
    expect((await developer.post(path, form.fields)).status).toBe(404);
    expect(await one(wanted.contract)).toMatchObject({ state: 'linked' });
  });

  it('only contracts of served chains can be linked', async () => {
    const { browser, path, wanted } = await openProject();
    const { status, text } = await browser.submit(path, 'link', { ...wanted, chain: 'moon-chain' });
    expect([status, text.includes('demo-chain')]).toEqual([400, true]);
    expect(await one(wanted.contract)).toBeUndefined();
  });

  it('no contract can be linked to an archived project', async () => {
    const { browser, path, project, wanted } = await openProject();
    const form = browser.formOf((await browser.get(path)).text, 'link')!;
    await browser.submit(`/projects/${project.id}`, 'archive', { confirm: 'Game' });
    for (const [name, value] of Object.entries(wanted)) form.fields.set(name, value);
    const { status, text } = await browser.post(path, form.fields);
    expect([status, text.includes('archived')]).toEqual([400, true]);
    expect(await one(wanted.contract)).toBeUndefined();
  });
});

const GRANTED_MS = Date.parse('2026-11-01T10:00:00Z');
const WAITING_MS = Date.parse('2026-11-02T10:00:00Z');

describe('the minter role of a signer', () => {
  /** A project with a contract and its signing key. */
  async function openSigning() {
    const { project, path, browser, wanted } = await openProject();
    await browser.submit(path, 'link', wanted);
    const address = `0x${(++contracts).toString(16).padStart(40, 'b')}`;
    const environmentId = `${project.id}-production`;
    const key = { address, projectId: project.id, environmentId, name: 'Minter', sealed: 's', createdAt: 1 };
    const sign = (state: 'live' | 'disabled') =>
      portal.parts.signableKeys.changedBy({ changedBy: 'a test', requestId: 'r' }).change(() => ({ ...key, state }));
    const setState = (over: Partial<MintSigner>) => {
      const contractAddress = wanted.contract.toLowerCase();
      const none = { heldMs: null, waiting: 0, waitsMs: 0, why: '' };
      mintSigners[environmentId] = [{ chain: 'demo-chain', contractAddress, signerAddress: address, ...none, ...over }];
    };
    return { sign, setState, text: async () => (await browser.get(path)).text };
  }

  it('the page shows a missing signer, and an unknown role before the first mint', async () => {
    const { sign, setState, text } = await openSigning();
    expect(await text()).toContain('No signer. Create one');
    await sign('live');
    expect(await text()).toContain('Role unknown until the first mint');
    setState({});
    expect(await text()).toContain('Role unknown until the first mint');
    await sign('disabled');
    expect(await text()).toContain('No signer. Create one');
  });

  it('the page shows the role as of the last mint that confirmed it', async () => {
    const { sign, setState, text } = await openSigning();
    await sign('live');
    setState({ heldMs: GRANTED_MS });
    expect(await text()).toContain('as of <time datetime="2026-11-01T10:00:00.000Z">');
  });

  it('the page shows waiting mints, their reason, and the last confirmed role', async () => {
    const { sign, setState, text } = await openSigning();
    await sign('live');
    setState({ heldMs: GRANTED_MS, waiting: 3, waitsMs: WAITING_MS, why: '0xbb has no MINTER_ROLE of the contract.' });
    const page = await text();
    expect(page).toMatch(/3\u00a0mints[^<]*<time datetime="2026-11-02[^>]*>[^<]*<\/time>: 0xbb has no MINTER_ROLE/);
    expect(page).toContain('<time datetime="2026-11-01');
  });

  it('the role of another signer, contract or chain is not shown', async () => {
    const { sign, setState, text } = await openSigning();
    await sign('live');
    for (const other of [{ chain: 'other' }, { contractAddress: `0x${'9'.repeat(40)}` }, { signerAddress: '0x1' }]) {
      setState({ heldMs: GRANTED_MS, ...other });
      expect(await text()).toContain('Role unknown until the first mint');
    }
  });

  it('the page shows collections when roles cannot be read', async () => {
    const { sign, text } = await openSigning();
    await sign('live');
    const { mintSigners: read } = portal.parts.reads;
    Object.assign(portal.parts.reads, { mintSigners: () => Promise.reject(new Error('connection lost')) });
    const page = await text();
    Object.assign(portal.parts.reads, { mintSigners: read });
    expect([page.includes('not available'), page.includes('Swords')]).toEqual([true, true]);
  });
});
