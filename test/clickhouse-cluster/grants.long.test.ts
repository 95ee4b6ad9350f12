import { createAnalystStore, followRole, type PortalRecordLists } from '@playline/access-keys';
import { WrongCluster } from '@playline/stores';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';
import { createAnalystsCommand } from '../../services/operator/src/commands/analysts.ts';
import { runInProcess } from '../../services/operator/src/test/run-in-process.ts';

const START_MS = 120_000;
let engine: AnalystsEngine;
beforeAll(async () => {
  engine = await openAnalystsEngine({ nodes: 2 });
}, START_MS);
afterAll(() => engine?.close(), START_MS);

const owner = { accountId: 'member', projectId: 'p', name: 'Metabase' };
const toRecords = (environments: readonly string[]) =>
  ({
    accounts: [{ id: 'member', state: 'live', isAdministrator: false, roles: [{ projectId: 'p', role: 'analyst' }] }],
    projects: [{ id: 'p', environments: environments.map((id) => ({ id })) }],
  }) as unknown as PortalRecordLists;
const openStore = (account = engine.accountOf('accounts')) => createAnalystStore(account, engine.pool);
const readEach = (account: string) =>
  Promise.all(
    engine.nodes.map(async (node) => {
      const sql = `SELECT environment_id FROM analyst_grants FINAL WHERE account = '${account}' AND NOT revoked ORDER BY 1`;
      return (await node.runAsOperator(sql)).trim().split('\n').join();
    }),
  );
let version = Date.now();
/** A change of which the other node did not store its copy. */
const changeOn = (index: number, account: string, environmentId: string, revoked: boolean) => {
  version += 1;
  return engine.nodes[index]!.runAsOperator(
    `INSERT INTO analyst_grants VALUES ('${account}', '${environmentId}', ${revoked}, now64(3), ${version})`,
  );
};

it.each([0, 1])('a grant or revocation that only node %i stored is repaired when it is repeated', async (index) => {
  const store = openStore();
  const { account } = await store.create({ owner, rawIds: false });
  const follow = async (environments: readonly string[]) => {
    const listed = (await store.list()).find((each) => each.account === account)!;
    await followRole(store, listed, toRecords(environments));
    return readEach(account);
  };
  expect(await follow(['p-one', 'p-two'])).toEqual(['p-one,p-two', 'p-one,p-two']);
  await changeOn(index, account, 'p-two', true);
  expect(await follow(['p-one'])).toEqual(['p-one', 'p-one']);
  await changeOn(index, account, 'p-three', false);
  expect(await follow(['p-one', 'p-three'])).toEqual(['p-one,p-three', 'p-one,p-three']);
  await changeOn(index, account, 'p-one', true);
  await store.drop(account);
  expect(await readEach(account)).toEqual(['', '']);
});

it('npm run analysts -- grant repairs a grant that only one node stored', async () => {
  await changeOn(0, 'analyst', 'demo-production', false);
  const context = { clickhouse: () => engine.accountOf('operator'), folder: '/nowhere', environment: {} };
  const args = ['analysts', 'grant', '--account', 'analyst', '--environment', 'production'];
  const { code, progress } = await runInProcess([createAnalystsCommand(context)], args);
  expect([code, progress]).toEqual([0, expect.any(String)]);
  expect(await readEach('analyst')).toEqual(['*,demo-production', '*,demo-production']);
});

it('credentials are listed while a node does not respond', async () => {
  const { account } = await openStore().create({ owner, rawIds: false });
  const { cluster, ...others } = engine.accountOf('accounts');
  const urls = [engine.url, 'http://127.0.0.1:1'];
  const listed = await openStore({ ...others, cluster: { ...cluster!, urls } }).list();
  expect(listed.map((each) => each.account)).toContain(account);
});

it('grants are neither read nor changed with the settings of a single server or of another cluster', async () => {
  const { cluster, ...single } = engine.accountOf('accounts');
  for (const account of [single, { ...single, cluster: { ...cluster!, name: 'playline_0' } }]) {
    const store = openStore(account);
    await expect(store.list()).rejects.toThrow(WrongCluster);
    await expect(store.setGrant('analyst_1', { environmentId: 'x', revoked: false })).rejects.toThrow(WrongCluster);
  }
  expect(await readEach('analyst_1')).not.toContain('x');
});
