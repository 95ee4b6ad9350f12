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

async function openProject(role: Role = 'developer') {
  const project = await portal.addProject('Game');
  const base = `/projects/${project.id}/environments/production`;
  const path = `${base}/signable-keys`;
  const all = async () => (await portal.parts.signableKeys.all()).filter(({ projectId }) => projectId === project.id);
  return { project, base, path, all, browser: await portal.signIn({ project, role }) };
}

/** A second portal with the same records, and a developer's browser in it. */
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
  it('a new key can be opened by the signer only; the page shows its address and nothing sealed', async () => {
    const { browser, path, all } = await openProject();
    const created = await browser.submit(path, 'create', { name: 'Minter' });
    expect([created.status, created.headers.get('location')]).toEqual([303, `${path}?done=created`]);
    const [record] = await all();
    expect(record).toMatchObject({ name: 'Minter', state: 'live', requestId: created.headers.get('x-trace-id') });
    expect(await signer.signMessage(record!, 'm')).toMatch(/^0x[0-9a-f]{130}$/);
    const { text } = await browser.get(path);
    expect(text).toContain(`data-copy="${record!.address}"`);
    for (const part of record!.sealed.split('.').filter((each) => each !== '')) expect(text).not.toContain(part);
  });

  it('the page shows the calls that grant the roles of a linked contract to each live key', async () => {
    const { browser, base, path, all } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    const contract = `0x${'ab'.repeat(20)}`;
    await browser.submit(`${base}/collections`, 'link', { chain: 'demo-chain', contract, name: 'Swords' });
    const [record] = await all();
    const { text } = await browser.get(path);
    for (const { role, data } of grantCallsOf({ contract, address: record!.address })) {
      expect(text).toContain(role);
      expect(text).toContain(`data-copy="${data}"`);
    }
  });

  it('a developer disables and enables a key', async () => {
    const { browser, path, all } = await openProject();
    await browser.submit(path, 'create', { name: 'Minter' });
    await browser.submit(path, 'disable');
    expect(await all()).toMatchObject([{ state: 'disabled' }]);
    await browser.submit(path, 'enable');
    expect(await all()).toMatchObject([{ state: 'live', revision: 3 }]);
  });

  it('a form with the key of another project is refused', async () => {
    const [own, other] = [await openProject(), await openProject()];
    for (const { browser, path } of [own, other]) await browser.submit(path, 'create', { name: 'Minter' });
    const [{ address } = { address: '' }] = await other.all();
    expect((await own.browser.submit(own.path, 'disable', { address })).status).toBe(404);
    expect(await other.all()).toMatchObject([{ state: 'live', revision: 1 }]);
  });

  it('no key can be created without SIGNER_PUBLIC_KEY', async () => {
    const { project, path, all } = await openProject();
    const own = { settings: { ...settings, signerKey: null } };
    const { portal: unset, visitor } = await openBeside(project, own);
    const { text } = await visitor.get(path);
    expect([text.includes('SIGNER_PUBLIC_KEY'), visitor.formOf(text, 'create')]).toEqual([true, null]);
    expect(await all()).toEqual([]);
    await unset.close();
  });
});
