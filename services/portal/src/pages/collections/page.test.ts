import { expect, it, onTestFinished } from 'vitest';
import type { MintSigner } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const mintSigners: Record<string, MintSigner[]> = {};
const portal = usePortal({ reads: createMemoryReads({ mintSigners }) });

let contracts = 0;

async function openProject() {
  const project = await portal.addProject('Game');
  const toPath = (environment: string) => `/projects/${project.id}/environments/${environment}/collections`;
  const contract = `0x${(++contracts).toString(16).toUpperCase().padStart(40, 'A')}`;
  const values = { chain: 'demo-chain', contract, name: 'Swords' };
  const browser = await portal.signIn({ project, role: 'owner' });
  return { project, path: toPath('production'), toPath, browser, values };
}

const findCollection = async (contract: string) =>
  (await portal.parts.collections.all()).find(({ contractAddress }) => contractAddress === contract.toLowerCase());

it('an owner can link, rename, move, unlink and relink a contract', async () => {
  const { browser, path, toPath, project, values } = await openProject();
  const linked = await browser.submit(path, 'link', values);
  expect([linked.status, linked.headers.get('location')]).toEqual([303, `${path}?done=linked`]);
  const address = values.contract.toLowerCase();
  const { text } = await browser.get(`${path}?done=linked`);
  expect([text.includes(`data-copy="${address}"`), text.includes('Contract linked.')]).toEqual([true, true]);
  await browser.submit(path, 'rename', { name: 'Axes' });
  await browser.submit(toPath('development'), 'relink');
  expect(await findCollection(address)).toMatchObject({ name: 'Axes', environmentId: `${project.id}-development` });
  expect((await browser.submit(toPath('development'), 'unlink', { confirm: 'yes' })).status).toBe(400);
  await browser.submit(toPath('development'), 'unlink', { confirm: 'unlink' });
  expect(await findCollection(address)).toMatchObject({ state: 'unlinked' });
  await browser.submit(path, 'relink');
  const [account] = (await portal.parts.accounts.all()).filter(({ roles }) => roles[0]?.projectId === project.id);
  const owner = { projectId: project.id, environmentId: `${project.id}-production`, changedBy: account!.id };
  expect(await findCollection(address)).toMatchObject({ ...owner, state: 'linked', name: 'Axes', revision: 5 });
});

it('the collections page rejects a contract on a chain that is not served', async () => {
  const { browser, path, values } = await openProject();
  const { status, text } = await browser.submit(path, 'link', { ...values, chain: 'moon-chain' });
  expect([status, text.includes('demo-chain')]).toEqual([400, true]);
  expect(await findCollection(values.contract)).toBeUndefined();
});

it('the chain of a contract is chosen from the served chains, and is entered only if they are unknown', async () => {
  const { browser, path } = await openProject();
  const { text } = await browser.get(path);
  expect(text).toMatch(/<select[^>]*name="chain"><option value="demo-chain">/);
  expect(text).toContain('Addresses on other-chain are not checked');
  const open = await openPortal();
  const settings = { ...open.parts.settings, servedChains: null };
  await open.close();
  const unknown = await openPortal({ settings });
  onTestFinished(() => unknown.close());
  const project = await unknown.addProject('Game');
  const page = await (await unknown.signIn({ project, role: 'owner' })).get(
    path.replace(/projects\/[^/]*/, `projects/${project.id}`),
  );
  expect(page.text).toMatch(/<input[^>]*name="chain"/);
});

it('the collections page refuses an address without code, and every address while no node of its chain responds', async () => {
  const codes = [async () => false, () => Promise.reject(new Error('no node'))];
  const nodePortal = await openPortal({ readCode: () => codes.shift()!() });
  onTestFinished(() => nodePortal.close());
  const project = await nodePortal.addProject('Game');
  const browser = await nodePortal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}/environments/production/collections`;
  const values = { chain: 'demo-chain', contract: `0x${'1'.repeat(40)}`, name: 'Swords' };
  const refused = await browser.submit(path, 'link', values);
  expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('There is no contract at 0x1111') });
  const unreachable = await browser.submit(path, 'link', values);
  expect(unreachable).toMatchObject({ status: 409, text: expect.stringContaining('no node of demo-chain responds') });
  expect(await nodePortal.parts.collections.all()).toEqual([]);
});

it('an archived project rejects new contracts', async () => {
  const { browser, path, project, values } = await openProject();
  const form = browser.formOf((await browser.get(path)).text, 'link')!;
  await browser.submit(`/projects/${project.id}`, 'archive', { confirm: 'Game' });
  for (const [name, value] of Object.entries(values)) form.fields.set(name, value);
  const { status, text } = await browser.post(path, form.fields);
  expect([status, text.includes('archived')]).toEqual([400, true]);
  expect(await findCollection(values.contract)).toBeUndefined();
});

const UNKNOWN = 'Role unknown until the first mint';
const GRANTED_MS = Date.parse('2026-11-01T10:00:00Z');
const WAITING_MS = Date.parse('2026-11-02T10:00:00Z');

async function openSigning() {
  const { project, path, browser, values } = await openProject();
  await browser.submit(path, 'link', values);
  const address = `0x${(++contracts).toString(16).padStart(40, 'b')}`;
  const environmentId = `${project.id}-production`;
  const key = { address, projectId: project.id, environmentId, name: 'Minter', sealed: 's', createdAt: 1 };
  const sign = (state: 'live' | 'disabled') =>
    portal.parts.signableKeys.storeFor({ changedBy: 'a test', requestId: 'r' }).change(() => ({ ...key, state }));
  const setState = (state: Partial<MintSigner>) => {
    const contractAddress = values.contract.toLowerCase();
    const base = { roleProvenMs: null, waiting: 0, waitingSinceMs: 0, reason: '' };
    mintSigners[environmentId] = [{ chain: 'demo-chain', contractAddress, signerAddress: address, ...base, ...state }];
  };
  return { sign, setState, text: async () => (await browser.get(path)).text };
}

it('the collections page reports a missing signer, and that the role is unknown before the first mint', async () => {
  const { sign, setState, text } = await openSigning();
  expect(await text()).toContain('No signer. Create one');
  await sign('live');
  expect(await text()).toContain(UNKNOWN);
  setState({});
  expect(await text()).toContain(UNKNOWN);
  await sign('disabled');
  expect(await text()).toContain('No signer. Create one');
});

const WAITING = { waiting: 3, waitingSinceMs: WAITING_MS, reason: '0xbb has no MINTER_ROLE', roleProvenMs: GRANTED_MS };
it.each<[string, Partial<MintSigner>, string[]]>([
  ['a proven role', { roleProvenMs: GRANTED_MS }, ['as of <time datetime="2026-11-01T10:00:00.000Z"']],
  ['an unknown role if proven on another chain', { roleProvenMs: GRANTED_MS, chain: 'other' }, [UNKNOWN]],
  ['an unknown role if proven for another contract', { roleProvenMs: GRANTED_MS, contractAddress: '0x9' }, [UNKNOWN]],
  ['an unknown role if proven for another signer', { roleProvenMs: GRANTED_MS, signerAddress: '0x1' }, [UNKNOWN]],
  [
    'the number of waiting mints, their start time and reason, and the last proven role',
    WAITING,
    ['3\u00a0mints', '<time datetime="2026-11-02', ': 0xbb has no MINTER_ROLE', 'as of <time datetime="2026-11-01'],
  ],
])('the collections page shows %s', async (_, state, expected) => {
  const { sign, setState, text } = await openSigning();
  await sign('live');
  setState(state);
  const shown = await text();
  for (const each of expected) expect(shown).toContain(each);
});

it('the collections page lists collections even if the roles of signers cannot be read', async () => {
  const { sign, text } = await openSigning();
  await sign('live');
  const { mintSigners: read } = portal.parts.reads;
  Object.assign(portal.parts.reads, { mintSigners: () => Promise.reject(new Error('connection lost')) });
  const page = await text();
  Object.assign(portal.parts.reads, { mintSigners: read });
  expect([page.includes('currently unavailable'), page.includes('Swords')]).toEqual([true, true]);
});
