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
const SECRET = 'audit-rows-must-not-contain-this';

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

const toCollection = (changes: Partial<CollectionRecord>) => {
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
    ...changes,
  };
  return stores.outgoing(TOPICS.collections, collectionCodec, record, Buffer.from(record.id));
};
const toEntry = (changes: Partial<AuditEntryRecord>) => {
  const record: AuditEntryRecord = {
    entryId: randomUUID(),
    happenedAt: Date.now(),
    actor: 'ada',
    action: 'session.create',
    projectId: '',
    environmentId: '',
    object: 'account-1',
    detail: '{"method":"passkey"}',
    address: '192.0.2.7',
    requestId: 'r',
    ...changes,
  };
  return stores.outgoing(TOPICS.audit, auditEntryCodec, record, Buffer.from(record.projectId));
};
const readAudit = (projectId: string, columns = 'action, actor, object, request_id') =>
  stores.readRows<Record<string, unknown>>(
    `SELECT ${columns} FROM audit_log FINAL WHERE project_id = '${projectId}' ORDER BY happened_at, entry_id`,
  );
const untilRows = (projectId: string, count: number) =>
  until(`${count} audit rows`, async () => (await readAudit(projectId)).length === count);
const merge = async () => {
  await stores.query('SYSTEM START MERGES audit_log');
  await stores.query('OPTIMIZE TABLE audit_log FINAL');
};

it('the event writer derives audit entries from every record, including superseded records', async () => {
  const projectId = 'superseded';
  const at = Date.now();
  await stores.publish([
    toCollection({ projectId, changedAt: at }),
    toCollection({ projectId, changedAt: at + 1, revision: 2, state: 'unlinked', requestId: 'request-2' }),
  ]);
  await untilRows(projectId, 2);
  const expected = { actor: 'ada', object: 'chain:0x01' };
  expect(await readAudit(projectId)).toEqual([
    { action: 'collection.create', ...expected, request_id: 'request-1' },
    { action: 'collection.unlink', ...expected, request_id: 'request-2' },
  ]);
});

it('audit_log contains a change to an account for the instance and for its projects, without secrets', async () => {
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

it('audit_log contains a duplicate record once, even if a new consumer group reads the topic again', async () => {
  const projectId = 'twice';
  const record = toCollection({ projectId });
  await stores.publish([record, toEntry({ projectId })]);
  await stores.publish([record]);
  await untilRows(projectId, 2);
  // With blocks of one record, the second reader writes different blocks with different tokens.
  const secondWriter = await stores.startWriter('again', { BLOCK_ROWS_MAX: '1' });
  const raw = async () => Number(await stores.query("SELECT count() FROM audit_log WHERE project_id = 'twice'"));
  await until('the rows are stored again', async () => (await raw()) > 3);
  expect(await readAudit(projectId)).toHaveLength(2);
  const isMerged = async () => {
    await merge();
    return (await raw()) === 2;
  };
  await until('each row remains once', isMerged);
  await stores.query('SYSTEM STOP MERGES audit_log');
  expect(await stores.stop(secondWriter, 'SIGTERM')).toBe(0);
});

it('audit_log removes addresses after 90 days and entries after two years', async () => {
  const projectId = 'old';
  const withAge = (days: number) => toEntry({ projectId, happenedAt: Date.now() - days * DAY_MS, object: `${days}` });
  await stores.publish([withAge(800), withAge(100), withAge(80)]);
  await untilRows(projectId, 3);
  await merge();
  await untilRows(projectId, 2);
  expect(await readAudit(projectId, 'object, address')).toEqual([
    { object: '100', address: '' },
    { object: '80', address: '192.0.2.7' },
  ]);
  await stores.query('SYSTEM STOP MERGES audit_log');
});

it('the event writer loses no audit entry when it is killed repeatedly', async () => {
  await stores.killWriters();
  const projectId = 'killed';
  const all = 400;
  const batches = Array.from({ length: 20 }, (_, batch) =>
    Array.from({ length: all / 20 }, (_unused, index) => toEntry({ projectId, object: `${batch}-${index}` })),
  );
  const settings = { BLOCK_ROWS_MAX: '20', BLOCK_AGE_MAX_MS: '20' };
  const stored = async () => new Set((await readAudit(projectId)).map(({ object }) => object)).size;
  expect(await stores.killRepeatedly({ group: 'killed', kills: 2, settings, batches, stored, all })).toBe(0);
}, 180_000);
