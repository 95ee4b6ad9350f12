import { randomBytes, randomUUID } from 'node:crypto';
import {
  type AccountRecord,
  type AuditEntryRecord,
  accountCodec,
  auditEntryCodec,
  type CollectionRecord,
  collectionCodec,
  TOPICS,
} from '@playline/contracts';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const DAY_MS = 86_400_000;
const SECRET = 'no-audit-may-contain-this';

let stores: RealStores;
beforeAll(async () => {
  stores = await openRealStores([TOPICS.collections.name, TOPICS.accounts.name, TOPICS.audit.name]);
  await stores.query('SYSTEM STOP MERGES audit_log');
  await stores.startWriter('audit');
});
afterAll(async () => {
  await stores.killWriters();
  await stores.close();
});

const collectionRecord = (over: Partial<CollectionRecord>) => {
  const record: CollectionRecord = {
    id: 'chain:0x01',
    revision: 1,
    chain: 'chain',
    contractAddress: '0x01',
    projectId: 'demo',
    environmentId: 'demo-production',
    name: 'Swords',
    state: 'linked',
    createdAt: 1_000,
    changedAt: Date.now(),
    changedBy: 'ada',
    requestId: 'request-1',
    ...over,
  };
  return stores.outgoing(TOPICS.collections, collectionCodec, record, Buffer.from(record.id));
};
const entryRecord = (over: Partial<AuditEntryRecord>) => {
  const record: AuditEntryRecord = {
    entryId: randomUUID(),
    happenedAt: Date.now(),
    actor: 'ada',
    action: 'session.create',
    projectId: '',
    environmentId: '',
    object: 'account-1',
    detail: '{"way":"passkey"}',
    address: '192.0.2.7',
    requestId: 'r',
    ...over,
  };
  return stores.outgoing(TOPICS.audit, auditEntryCodec, record, Buffer.from(record.projectId));
};
const auditOf = (projectId: string, columns = 'action, actor, object, request_id') =>
  stores.rowsOf<Record<string, unknown>>(
    `SELECT ${columns} FROM audit_log FINAL WHERE project_id = '${projectId}' ORDER BY happened_at, entry_id`,
  );
const untilRows = (projectId: string, count: number) =>
  until(`${count} audit rows`, async () => (await auditOf(projectId)).length === count);
const merge = async () => {
  await stores.query('SYSTEM START MERGES audit_log');
  await stores.query('OPTIMIZE TABLE audit_log FINAL');
};

it('the event writer derives audit entries from each record, also from one that another has superseded', async () => {
  const projectId = 'superseded';
  const at = Date.now();
  await stores.publish([
    collectionRecord({ projectId, changedAt: at }),
    collectionRecord({ projectId, changedAt: at + 1, revision: 2, state: 'unlinked', requestId: 'request-2' }),
  ]);
  await untilRows(projectId, 2);
  const same = { actor: 'ada', object: 'chain:0x01' };
  expect(await auditOf(projectId)).toEqual([
    { action: 'collection.create', ...same, request_id: 'request-1' },
    { action: 'collection.unlink', ...same, request_id: 'request-2' },
  ]);
});

it('the audit has no secret of an account, and has each change under the instance and under its projects', async () => {
  const projectId = `of-${randomBytes(4).toString('hex')}`;
  const account: AccountRecord = {
    id: 'account-9',
    revision: 1,
    name: 'Ada',
    login: 'ada',
    state: 'invited',
    isAdministrator: false,
    roles: [{ projectId, role: 'owner' }],
    passwordHash: SECRET,
    openId: null,
    passkeys: [{ id: SECRET, publicKey: SECRET, counter: 0, transports: [], name: SECRET, createdAt: 1 }],
    invitation: { hash: SECRET, expiresAt: 2, takenBy: null },
    sessionsFrom: 0,
    createdAt: 1,
    changedAt: Date.now(),
    changedBy: 'operator',
    requestId: 'request-3',
  };
  await stores.publish([stores.outgoing(TOPICS.accounts, accountCodec, account, Buffer.from(account.id))]);
  await untilRows(projectId, 1);
  const all = await stores.query("SELECT * FROM audit_log WHERE object = 'account-9' FORMAT JSONEachRow");
  expect(all.trim().split('\n')).toHaveLength(2);
  expect(all).not.toContain(SECRET);
});

it('the audit has one row of a record that is in the log twice, also when a new group reads the topic again', async () => {
  const projectId = 'twice';
  const record = collectionRecord({ projectId });
  await stores.publish([record, entryRecord({ projectId })]);
  await stores.publish([record]);
  await untilRows(projectId, 2);
  // Blocks of one record, so that the second reader writes other blocks, under other tokens.
  const again = await stores.startWriter('again', { BLOCK_ROWS_MAX: '1' });
  const raw = async () => Number(await stores.query("SELECT count() FROM audit_log WHERE project_id = 'twice'"));
  await until('the rows again', async () => (await raw()) > 3);
  expect(await auditOf(projectId)).toHaveLength(2);
  // The second reader may still be writing.
  const isMerged = async () => {
    await merge();
    return (await raw()) === 2;
  };
  await until('one row of each', isMerged);
  await stores.query('SYSTEM STOP MERGES audit_log');
  expect(await stores.stop(again, 'SIGTERM')).toBe(0);
});

it('the audit loses the address of a request after 90 days, and the whole entry after two years', async () => {
  const projectId = 'old';
  const ofAge = (days: number) => entryRecord({ projectId, happenedAt: Date.now() - days * DAY_MS, object: `${days}` });
  await stores.publish([ofAge(800), ofAge(100), ofAge(80)]);
  await untilRows(projectId, 3);
  await merge();
  await untilRows(projectId, 2);
  expect(await auditOf(projectId, 'object, address')).toEqual([
    { object: '100', address: '' },
    { object: '80', address: '192.0.2.7' },
  ]);
  await stores.query('SYSTEM STOP MERGES audit_log');
});

it('the event writer loses no audit entry when it is killed again and again', async () => {
  await stores.killWriters();
  const projectId = 'killed';
  const all = 400;
  const batches = Array.from({ length: 20 }, (_, batch) =>
    Array.from({ length: all / 20 }, (_unused, index) => entryRecord({ projectId, object: `${batch}-${index}` })),
  );
  const settings = { BLOCK_ROWS_MAX: '20', BLOCK_AGE_MAX_MS: '20' };
  const stored = async () => new Set((await auditOf(projectId)).map(({ object }) => object)).size;
  expect(await stores.killRepeatedly({ group: 'killed', kills: 2, settings, batches, stored, all })).toBe(0);
}, 180_000);
