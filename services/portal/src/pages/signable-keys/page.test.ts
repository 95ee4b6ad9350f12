import { generateKeyPairSync } from 'node:crypto';
import { grantCallsOf, type ProjectRecord, parseSignerPublicKey, type Role } from '@playline/access-keys';
import { createSigner, parseSignerKeys } from '@playline/access-keys/signer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwkOf = (key: typeof privateKey) => JSON.stringify(key.export({ format: 'jwk' }));
const signer = createSigner({ privateKeys: parseSignerKeys(`[${jwkOf(privateKey)}]`) });
const settings = {
  keyPrefix: 'svcapik',
  headerPrefix: 'x-service',
  gatewayUrl: 'http://g.test',
  chainApiUrl: 'http://c.test',
  servedChains: null,
  signerKey: parseSignerPublicKey(jwkOf(publicKey)),
};

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal({ settings });
});
afterAll(() => portal.close());

const SCRIPT = '<script>alert("1")</script>';

async function openProject(role: Role = 'developer') {
  const project = await portal.addProject('Game');
  const base = `/projects/${project.id}/environments/production`;
  const path = `${base}/signable-keys`;
  const all = async () => (await portal.parts.signableKeys.all()).filter(({ projectId }) => projectId === project.id);
  return { project, base, path, all, browser: await portal.signIn({ project, role }) };
}

/** Another portal over the same nouns, and a browser of a developer in it. */
async function openBeside(project: ProjectRecord, own: Parameters<typeof openPortal>[0]) {
  const { origin: _, ...parts } = portal.parts;
  const beside = await openPortal({ ...parts, ...own });
  const account = await portal.addAccount({ roles: [{ projectId: project.id, role: 'developer' }] });
  const session = { accountId: account.id, userAgent: 'a test', address: '127.0.0.1' };
  const visitor = beside.browser();
  visitor.keep((await portal.parts.sessions.create(session)).text);
  return { portal: beside, visitor };
}

describe('the page of signable keys', () => {
  it('makes a key that the signer alone opens, and shows its address, and nothing that was sealed', async () => {
    const { browser, path, all } = await openProject();
    const made = await browser.submit(path, 'create', { name: 'Minter' });
    expect([made.status, made.headers.get('location')]).toEqual([303, `${path}?done=created`]);
    const [record] = await all();
    expect(record).toMatchObject({ name: 'Minter', state: 'live', requestId: made.headers.get('x-trace-id') });
    expect(await signer.signMessage(record!, 'm')).toMatch(/^0x[0-9a-f]{130}$/);
    const { text } = await browser.get(path);
    expect(text).toContain(`data-copy="${record!.address}"`);
    for (const part of record!.sealed.split('.').filter((each) => each !== '')) expect(text).not.toContain(part);
  });

  it('shows the calls that give the roles of a linked contract to each live key, and where it stands whether they did', async () => {
    const { browser, base, path, all } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    expect((await browser.get(path)).text).toContain('once there is a contract to send them to');
    const contract = `0x${'ab'.repeat(20)}`;
    await browser.submit(`${base}/collections`, 'link', { chain: 'demo-chain', contract, name: 'Swords' });
    const [record] = await all();
    const { text } = await browser.get(path);
    for (const { role, data } of grantCallsOf({ contract, address: record!.address })) {
      expect(text).toContain(role);
      expect(text).toContain(`data-copy="${data}"`);
    }
    expect(text).toContain('as the minter saw it last');
  });

  it('disables a key and enables it again', async () => {
    const { browser, path, all } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    await browser.submit(path, 'disable');
    expect(await all()).toMatchObject([{ state: 'disabled' }]);
    expect((await browser.get(`${path}?done=disabled`)).text).toContain('stay on the chain');
    await browser.submit(path, 'enable');
    expect(await all()).toMatchObject([{ state: 'live', revision: 3 }]);
  });

  it('asks for a fresh sign-in before it makes or enables a key, and for none to disable one', async () => {
    const { browser, path, all, project } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    const { sessions } = portal.parts;
    const find: typeof sessions.find = async (text) => {
      const session = await sessions.find(text);
      return session === null ? null : { ...session, signedInAt: session.signedInAt - 11 * 60_000 };
    };
    const { portal: late, visitor } = await openBeside(project, { sessions: { ...sessions, find } });
    const create = await visitor.submit(path, 'create', { name: 'Other' });
    expect(create.headers.get('location')).toMatch(/^\/sign-in\?again=1&next=/);
    expect((await visitor.submit(path, 'disable')).headers.get('location')).toBe(`${path}?done=disabled`);
    expect((await visitor.submit(path, 'enable')).headers.get('location')).toMatch(/^\/sign-in\?again=1/);
    expect(await all()).toMatchObject([{ name: 'Minter', state: 'disabled' }]);
    await late.close();
  });

  it('shows a project nothing of another one, and keeps its forms from that one', async () => {
    const [ours, theirs] = [await openProject(), await openProject()];
    await theirs.browser.submit(theirs.path, 'create', { name: 'Their minter' });
    await ours.browser.submit(ours.path, 'create', { name: 'Our minter' });
    const [their] = await theirs.all();
    const { text } = await ours.browser.get(ours.path);
    expect(text).not.toMatch(new RegExp(`Their minter|${their!.address}`));
    expect((await ours.browser.get(theirs.path)).status).toBe(404);
    const refused = await ours.browser.submit(ours.path, 'disable', { address: their!.address });
    expect([refused.status, refused.text.includes('no such signable key')]).toEqual([404, true]);
    expect(await theirs.all()).toMatchObject([{ state: 'live', revision: 1 }]);
  });

  it('shows analysts what there is, and gives them no form', async () => {
    const { project, path, browser, all } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    const analyst = await portal.signIn({ project, role: 'analyst' });
    const { text } = await analyst.get(path);
    expect(text).toContain((await all())[0]!.address);
    for (const deed of ['create', 'disable', 'enable']) expect(analyst.formOf(text, deed)).toBeNull();
  });

  it('writes a name that is markup as text', async () => {
    const { browser, base, path } = await openProject();
    await browser.submit(path, 'create', { name: SCRIPT });
    const contract = `0x${'cd'.repeat(20)}`;
    await browser.submit(`${base}/collections`, 'link', { chain: 'demo-chain', contract, name: SCRIPT });
    const again = await browser.submit(path, 'create', { name: SCRIPT });
    expect(again.status).toBe(409);
    for (const { text } of [again, await browser.get(path)]) {
      expect(text).not.toContain('<script>alert');
      expect(text).toContain('&lt;script&gt;alert(');
    }
  });

  it('says that no key can be made where nobody has told whom to seal it to', async () => {
    const { project, path, all } = await openProject();
    const own = { settings: { ...settings, signerKey: null } };
    const { portal: untold, visitor } = await openBeside(project, own);
    const { text } = await visitor.get(path);
    expect([text.includes('SIGNER_PUBLIC_KEY'), visitor.formOf(text, 'create')]).toEqual([true, null]);
    expect(await all()).toEqual([]);
    await untold.close();
  });
});
