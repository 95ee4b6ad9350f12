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
const SCRIPT = '<script>alert("1")</script>';

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
  it('links a contract to its environment, renames it, moves it, unlinks it and links it again', async () => {
    const { browser, path, pathOf, project, wanted } = await openProject();
    const linked = await browser.submit(path, 'link', wanted);
    expect([linked.status, linked.headers.get('location')]).toEqual([303, `${path}?done=linked`]);
    const address = wanted.contract.toLowerCase();
    const { text } = await browser.get(`${path}?done=linked`);
    expect([text.includes(`data-copy="${address}"`), text.includes('The contract is linked.')]).toEqual([true, true]);
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

  it('shows a project nothing of another one, and keeps its forms from that one', async () => {
    const [ours, theirs] = [await openProject(), await openProject()];
    await theirs.browser.submit(theirs.path, 'link', { ...theirs.wanted, name: 'Their secret axe' });
    const refused = await ours.browser.submit(ours.path, 'link', theirs.wanted);
    expect([refused.status, refused.text.includes('ask an administrator of this installation')]).toEqual([409, true]);
    expect(refused.text).not.toMatch(new RegExp(`${theirs.project.id}|Their secret axe`));
    expect((await ours.browser.get(theirs.path)).status).toBe(404);
    // A form of one's own collection, with the contract of another project in it.
    await ours.browser.submit(ours.path, 'link', ours.wanted);
    const theirContract = { contract: theirs.wanted.contract, name: 'Mine', confirm: 'unlink' };
    for (const deed of ['rename', 'unlink']) {
      const { status, text } = await ours.browser.submit(ours.path, deed, theirContract);
      expect([status, text.includes('no such collection')]).toEqual([404, true]);
    }
    expect(await one(theirs.wanted.contract)).toMatchObject({ name: 'Their secret axe', state: 'linked', revision: 1 });
  });

  it('lets developers link and rename, owners unlink too, and analysts look', async () => {
    const { project, path, browser, wanted } = await openProject('owner');
    await browser.submit(path, 'link', wanted);
    const formsOf = async (role: Role) => {
      const other = await portal.signIn({ project, role });
      const { text } = await other.get(path);
      return ['link', 'rename', 'unlink'].filter((deed) => other.formOf(text, deed) !== null);
    };
    expect(await formsOf('owner')).toEqual(['link', 'rename', 'unlink']);
    expect(await formsOf('developer')).toEqual(['link', 'rename']);
    expect(await formsOf('analyst')).toEqual([]);
    const developer = await portal.signIn({ project, role: 'developer' });
    const form = developer.formOf((await developer.get(path)).text, 'rename')!;
    form.fields.set('deed', 'unlink');
    form.fields.set('confirm', 'unlink');
    expect((await developer.post(path, form.fields)).status).toBe(404);
    expect(await one(wanted.contract)).toMatchObject({ state: 'linked' });
  });

  it('writes what was typed as text, in the list, in what is refused and in what was typed wrong', async () => {
    const { browser, path, wanted } = await openProject();
    const wrong = await browser.submit(path, 'link', { chain: SCRIPT, contract: SCRIPT.slice(0, 42), name: SCRIPT });
    expect(wrong.status).toBe(400);
    await browser.submit(path, 'link', { ...wanted, name: SCRIPT });
    for (const { text } of [wrong, await browser.get(path)]) {
      expect(text).not.toContain('<script>alert');
      expect(text).toContain('&lt;script&gt;alert(');
    }
  });

  it('links only contracts of chains that are served, and lists those', async () => {
    const { browser, path, wanted } = await openProject();
    const { status, text } = await browser.submit(path, 'link', { ...wanted, chain: 'moon-chain' });
    expect([status, text.includes('is not served here. Served chains: demo-chain')]).toEqual([400, true]);
    expect(await one(wanted.contract)).toBeUndefined();
  });

  it('links nothing to an archived project', async () => {
    const { browser, path, project, wanted } = await openProject();
    const form = browser.formOf((await browser.get(path)).text, 'link')!;
    await browser.submit(`/projects/${project.id}`, 'archive', { confirm: 'Game' });
    for (const [name, value] of Object.entries(wanted)) form.fields.set(name, value);
    const { status, text } = await browser.post(path, form.fields);
    expect([status, text.includes('is archived')]).toEqual([400, true]);
    expect(await one(wanted.contract)).toBeUndefined();
  });
});

const HELD_MS = Date.parse('2026-11-01T10:00:00Z');
const WAITS_MS = Date.parse('2026-11-02T10:00:00Z');

describe('the minter’s role of a collection’s signer', () => {
  /** A project with a contract and the key that signs for it. */
  async function openSigning() {
    const { project, path, browser, wanted } = await openProject();
    await browser.submit(path, 'link', wanted);
    const address = `0x${(++contracts).toString(16).padStart(40, 'b')}`;
    const environmentId = `${project.id}-production`;
    const key = { address, projectId: project.id, environmentId, name: 'Minter', sealed: 's', createdAt: 1 };
    const sign = (state: 'live' | 'disabled') =>
      portal.parts.signableKeys.changedBy({ changedBy: 'a test', requestId: 'r' }).change(() => ({ ...key, state }));
    const seen = (over: Partial<MintSigner>) => {
      const contractAddress = wanted.contract.toLowerCase();
      const none = { heldMs: null, waiting: 0, waitsMs: 0, why: '' };
      mintSigners[environmentId] = [{ chain: 'demo-chain', contractAddress, signerAddress: address, ...none, ...over }];
    };
    return { sign, seen, text: async () => (await browser.get(path)).text };
  }

  it('is not known before the first mint, which is said, and where there is no signer, what to do', async () => {
    const { sign, seen, text } = await openSigning();
    expect(await text()).toContain('No signer: make one');
    await sign('live');
    expect(await text()).toContain('Nothing is known yet');
    seen({});
    expect(await text()).toContain('Nothing is known yet');
    await sign('disabled');
    expect(await text()).toContain('No signer: make one');
  });

  it('is held as of the last mint that was ready or done', async () => {
    const { sign, seen, text } = await openSigning();
    await sign('live');
    seen({ heldMs: HELD_MS });
    expect(await text()).toContain('Holds the minter’s role as of <time datetime="2026-11-01T10:00:00.000Z">');
  });

  it('is what mints wait for, in the words of the minter, since when, and when it was held before', async () => {
    const { sign, seen, text } = await openSigning();
    await sign('live');
    seen({ heldMs: HELD_MS, waiting: 3, waitsMs: WAITS_MS, why: '0xbb has no MINTER_ROLE of the contract.' });
    const page = await text();
    expect(page).toMatch(/3\u00a0mints, since <time datetime="2026-11-02[^>]*>[^<]*<\/time>: 0xbb has no MINTER_ROLE/);
    expect(page).toContain('It held the minter’s role as of <time datetime="2026-11-01');
    expect(page).not.toContain('Holds the minter');
  });

  it('is that of the signer and the contract, and of no other', async () => {
    const { sign, seen, text } = await openSigning();
    await sign('live');
    for (const other of [{ chain: 'other' }, { contractAddress: `0x${'9'.repeat(40)}` }, { signerAddress: '0x1' }]) {
      seen({ heldMs: HELD_MS, ...other });
      expect(await text()).toContain('Nothing is known yet');
    }
  });

  it('cannot be told while the store is away, and collections are shown', async () => {
    const { sign, text } = await openSigning();
    await sign('live');
    const { mintSigners: read } = portal.parts.reads;
    Object.assign(portal.parts.reads, { mintSigners: () => Promise.reject(new Error('away')) });
    const page = await text();
    Object.assign(portal.parts.reads, { mintSigners: read });
    expect([page.includes('Its role cannot be told now'), page.includes('Swords')]).toEqual([true, true]);
  });
});
