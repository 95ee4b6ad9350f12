import { generateKeyPairSync } from 'node:crypto';
import { grantCallsOf, parseSignerPublicKey } from '@playline/access-keys';
import { createSigner, parseSignerKeys } from '@playline/access-keys/signer';
import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const toJwk = (key: typeof privateKey) => JSON.stringify(key.export({ format: 'jwk' }));
const signer = createSigner({ privateKeys: parseSignerKeys(`[${toJwk(privateKey)}]`) });
const settings = {
  keyPrefix: 'svcapik',
  headerPrefix: 'x-service',
  gatewayUrl: 'http://g.test',
  chainApiUrl: 'http://c.test',
  servedChains: null,
  clickhouseUrl: 'http://c.test:8123',
  checkedChains: [],
  signerKey: parseSignerPublicKey(toJwk(publicKey)),
};

const portal = usePortal({ settings });

async function openProject() {
  const project = await portal.addProject('Game');
  const base = `/projects/${project.id}/environments/production`;
  const path = `${base}/signable-keys`;
  const all = async () => (await portal.parts.signableKeys.all()).filter(({ projectId }) => projectId === project.id);
  return { base, path, all, browser: await portal.signIn({ project, role: 'developer' }) };
}

it('a developer can create a signable key, view the calls for its roles, and disable and enable it', async () => {
  const { browser, base, path, all } = await openProject();
  const contract = `0x${'ab'.repeat(20)}`;
  await browser.submit(`${base}/collections`, 'link', { chain: 'demo-chain', contract, name: 'Swords' });
  const created = await browser.submit(path, 'create', { name: 'Minter' });
  expect([created.status, created.headers.get('location')]).toEqual([303, `${path}?done=created`]);
  const [record] = await all();
  expect(record).toMatchObject({ name: 'Minter', state: 'live', requestId: created.headers.get('x-trace-id') });
  expect(await signer.signMessage(record!, 'm')).toMatch(/^0x[0-9a-f]{130}$/);
  const { text } = await browser.get(path);
  expect(text).toContain(`data-copy="${record!.address}"`);
  for (const part of record!.sealed.split('.').filter((each) => each !== '')) expect(text).not.toContain(part);
  for (const { role, data } of grantCallsOf({ contract, address: record!.address })) {
    expect(text).toContain(role);
    expect(text).toContain(`data-copy="${data}"`);
  }
  await browser.submit(path, 'disable');
  expect(await all()).toMatchObject([{ state: 'disabled' }]);
  await browser.submit(path, 'enable');
  expect(await all()).toMatchObject([{ state: 'live', revision: 3 }]);
});

it('the signable keys page has no creation form without SIGNER_PUBLIC_KEY', async () => {
  const unconfigured = await openPortal();
  const project = await unconfigured.addProject('Game');
  const browser = await unconfigured.signIn({ project, role: 'developer' });
  const { text } = await browser.get(`/projects/${project.id}/environments/production/signable-keys`);
  expect([text.includes('SIGNER_PUBLIC_KEY'), browser.formOf(text, 'create')]).toEqual([true, null]);
  await unconfigured.close();
});
