import { randomBytes, randomUUID } from 'node:crypto';
import {
  type AccountRecord,
  type AuditEntryRecord,
  accountCodec,
  auditEntryCodec,
  type CollectionRecord,
  collectionCodec,
  frameRecord,
  TOPICS,
} from '@playline/contracts';
import { until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const DAY_MS = 86_400_000;
const SECRET = 'no-audit-may-hold-this';

describe('the event writer on records of access', () => {
  let stores: RealStores;
  let names: Record<'collections' | 'accounts' | 'audit', string>;

  beforeAll(async () => {
    stores = await openRealStores([TOPICS.collections.name, TOPICS.accounts.name, TOPICS.audit.name]);
    const of = (name: string) => stores.prefix + name;
    names = {
      collections: of(TOPICS.collections.name),
      accounts: of(TOPICS.accounts.name),
      audit: of(TOPICS.audit.name),
    };
    await stores.query('SYSTEM STOP MERGES audit_log');
  });
  afterEach(() => stores.killWriters());
  afterAll(() => stores.close());

  const collectionRecord = (over: Partial<CollectionRecord>) => {
    const record: CollectionRecord = {
      ...{ id: 'chain:0x01', revision: 1, chain: 'chain', contractAddress: '0x01', projectId: 'demo' },
      ...{ environmentId: 'demo-production', name: 'Swords', state: 'linked', createdAt: 1_000 },
      ...{ changedAt: Date.now(), changedBy: 'ada', requestId: 'request-1', ...over },
    };
    const value = frameRecord(stores.schemaIdOf(names.collections), collectionCodec.encode(record));
    return { topic: names.collections, key: Buffer.from(record.id), value };
  };
  const entryRecord = (over: Partial<AuditEntryRecord>) => {
    const record: AuditEntryRecord = {
      ...{ entryId: randomUUID(), happenedAt: Date.now(), actor: 'ada', action: 'session.create', projectId: '' },
      ...{ environmentId: '', object: 'account-1', detail: '{"way":"passkey"}', address: '192.0.2.7', requestId: 'r' },
      ...over,
    };
    const value = frameRecord(stores.schemaIdOf(names.audit), auditEntryCodec.encode(record));
    return { topic: names.audit, key: Buffer.from(record.projectId), value };
  };
  const auditOf = <T = Record<string, unknown>>(projectId: string, columns = 'action, actor, object, request_id') =>
    stores.rowsOf<T>(
      `SELECT ${columns} FROM audit_log FINAL WHERE project_id = '${projectId}' ORDER BY happened_at, entry_id`,
    );

  it('derives who did what from each record, also from one that another has superseded', async () => {
    const projectId = 'superseded';
    const at = Date.now();
    await stores.publish([
      collectionRecord({ projectId, changedAt: at }),
      collectionRecord({ projectId, changedAt: at + 1, revision: 2, state: 'unlinked', requestId: 'request-2' }),
    ]);
    const writer = await stores.startWriter('derived');
    await until('both changes', async () => (await auditOf(projectId)).length === 2);
    const same = { actor: 'ada', object: 'chain:0x01' };
    expect(await auditOf(projectId)).toEqual([
      { action: 'collection.create', ...same, request_id: 'request-1' },
      { action: 'collection.unlink', ...same, request_id: 'request-2' },
    ]);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  });

  it('stores no secret of an account, and records changes of accounts under the instance and under their projects', async () => {
    const projectId = `of-${randomBytes(4).toString('hex')}`;
    const account: AccountRecord = {
      ...{ id: 'account-9', revision: 1, name: 'Ada', login: 'ada', state: 'invited', isAdministrator: false },
      ...{ roles: [{ projectId, role: 'owner' }], passwordHash: SECRET, openId: null },
      passkeys: [{ id: SECRET, publicKey: SECRET, counter: 0, transports: [], name: SECRET, createdAt: 1 }],
      invitation: { hash: SECRET, expiresAt: 2, takenBy: null },
      sessionsFrom: 0,
      ...{ createdAt: 1, changedAt: Date.now(), changedBy: 'operator', requestId: 'request-3' },
    };
    const value = frameRecord(stores.schemaIdOf(names.accounts), accountCodec.encode(account));
    await stores.publish([{ topic: names.accounts, key: Buffer.from(account.id), value }]);
    await stores.startWriter('accounts');
    await until('the account', async () => (await auditOf(projectId)).length === 1);
    const all = await stores.query("SELECT * FROM audit_log WHERE object = 'account-9' FORMAT JSONEachRow");
    expect(all.trim().split('\n')).toHaveLength(2);
    expect(all).not.toContain(SECRET);
  });

  it('keeps one row of a record that is in the log twice, and of a topic that a new group reads again', async () => {
    const projectId = 'twice';
    const record = collectionRecord({ projectId });
    await stores.publish([record, entryRecord({ projectId })]);
    await stores.publish([record]);
    // Blocks of one record, so that the second reader writes other blocks, under other tokens.
    const first = await stores.startWriter('once', { BLOCK_ROWS_MAX: '1' });
    await until('both', async () => (await auditOf(projectId)).length === 2);
    await stores.stop(first, 'SIGTERM');
    await stores.startWriter('again');
    const raw = async () => Number(await stores.query("SELECT count() FROM audit_log WHERE project_id = 'twice'"));
    await until('the rows again', async () => (await raw()) > 3);
    expect(await auditOf(projectId)).toHaveLength(2);
    await stores.query('SYSTEM START MERGES audit_log');
    await stores.query('OPTIMIZE TABLE audit_log FINAL');
    expect(await raw()).toBe(2);
    await stores.query('SYSTEM STOP MERGES audit_log');
  });

  it('deletes the address of a request after 90 days, and the whole entry after two years', async () => {
    const projectId = 'old';
    const ofAge = (days: number) =>
      entryRecord({ projectId, happenedAt: Date.now() - days * DAY_MS, object: `${days}` });
    await stores.publish([ofAge(800), ofAge(100), ofAge(80)]);
    await stores.startWriter('aged');
    await until('all', async () => (await auditOf(projectId)).length === 3);
    await stores.query('SYSTEM START MERGES audit_log');
    await stores.query('OPTIMIZE TABLE audit_log FINAL');
    await until('the oldest is gone', async () => (await auditOf(projectId)).length === 2);
    expect(await auditOf(projectId, 'object, address')).toEqual([
      { object: '100', address: '' },
      { object: '80', address: '192.0.2.7' },
    ]);
    await stores.query('SYSTEM STOP MERGES audit_log');
  });

  it('loses no entry when it is killed while records come in', async () => {
    const projectId = 'killed';
    const all = 400;
    const entries = Array.from({ length: all }, (_, index) => entryRecord({ projectId, object: String(index) }));
    const settings = { BLOCK_ROWS_MAX: '20', BLOCK_AGE_MAX_MS: '20' };
    for (const quarter of [0, 1, 2, 3]) {
      await stores.publish(entries.slice((quarter * all) / 4, ((quarter + 1) * all) / 4));
      const before = (await auditOf(projectId)).length;
      const writer = await stores.startWriter('killed', settings);
      await until('rows come', async () => (await auditOf(projectId)).length > before);
      await stores.stop(writer, 'SIGKILL');
    }
    const writer = await stores.startWriter('killed', settings);
    await until('every entry', async () => (await auditOf(projectId)).length === all, 60_000);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
    const objects = await auditOf<{ object: string }>(projectId, 'object');
    expect(new Set(objects.map(({ object }) => object)).size).toBe(all);
  }, 180_000);
});
