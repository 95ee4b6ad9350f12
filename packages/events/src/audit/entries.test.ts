import {
  type AccessKeyRecord,
  type AccountRecord,
  type AuditEntryRecord,
  accessKeyCodec,
  accountCodec,
  auditEntryCodec,
  type CollectionRecord,
  collectionCodec,
  type EndedKey,
  type LiveKey,
  type ProjectRecord,
  projectCodec,
  type RateLimitKeyRecord,
  type RecordCodec,
  rateLimitKeyCodec,
  type SignableKeyRecord,
  signableKeyCodec,
} from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { RecordRows } from '../record-rows.ts';
import {
  accountAuditRows,
  collectionAuditRows,
  entryAuditRows,
  keyAuditRows,
  projectAuditRows,
  rateLimitKeyAuditRows,
  signableKeyAuditRows,
} from '../record-rows.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { readRows } from '../row/test/read-columns.ts';
import {
  type AuditRow,
  auditOfAccount,
  auditOfCollection,
  auditOfEntry,
  auditOfKey,
  auditOfProject,
  auditOfRateLimitKey,
  auditOfSignableKey,
} from './entries.ts';

/** Part of every secret in the following records. Audit rows must not contain it. */
const SECRET = 'SECRET';
const secret = (name: string) => `${SECRET}-${name}`;
const author = { changedAt: 2_000, changedBy: 'ada', requestId: 'request-7' };

const project: ProjectRecord = {
  id: 'demo',
  revision: 3,
  name: 'Demo',
  state: 'live',
  timeZone: 'Europe/Berlin',
  safeProperties: ['level'],
  alertWebhook: `https://chat.example/${secret('webhook')}`,
  alertEmails: [`${secret('login')}@example.com`],
  alertKeys: [1_500],
  createdAt: 1_000,
  ...author,
  environments: [
    {
      id: 'production',
      name: 'production',
      kind: 'production',
      createdAt: 1_000,
      cap: { perSecond: 10, burst: 20 },
      limit: null,
    },
  ],
};
const keyFields = {
  hash: secret('hash'),
  first4: 'sk_a',
  last4: 'wxyz',
  name: 'server',
  createdAt: 500,
  changedBy: 'ada',
};
const liveKey: LiveKey = { ...keyFields, keyId: 'key-2', text: secret('text'), origins: [], endsAt: null, limitId: '' };
const endedKey: EndedKey = { ...keyFields, keyId: 'key-1', revokedAt: 2_000 };
const scope = { projectId: 'demo', environmentId: 'demo-production' };
const key: AccessKeyRecord = {
  id: 'demo-production/secret',
  revision: 1,
  ...scope,
  environment: 'production',
  kind: 'secret',
  live: liveKey,
  ended: [],
  action: 'create',
  ...author,
};
const ending: AccessKeyRecord = {
  ...key,
  revision: 4,
  kind: 'publishable',
  live: { ...liveKey, endsAt: 9_000 },
  action: 'change',
};
const refreshed: AccessKeyRecord = { ...key, revision: 2, ended: [endedKey], action: 'refresh' };
const revoked: AccessKeyRecord = { ...key, revision: 3, live: null, ended: [endedKey], action: 'revoke' };
const rateLimitKey: RateLimitKeyRecord = {
  keyId: 'limit-1',
  revision: 1,
  partner: 'Partner',
  calls: 10,
  windowS: 60,
  expiresAt: null,
  hash: secret('hash'),
  first4: 'abcd',
  last4: 'wxyz',
  createdAt: 1_000,
  revokedAt: null,
  ...author,
};
const collection: CollectionRecord = {
  id: 'chain:0x01',
  revision: 1,
  chain: 'chain',
  contractAddress: '0x01',
  ...scope,
  name: 'Swords',
  state: 'linked',
  createdAt: 1_000,
  ...author,
};
const account: AccountRecord = {
  id: 'account-1',
  revision: 2,
  name: 'Ada',
  login: 'ada@example.org',
  state: 'live',
  isAdministrator: false,
  roles: [
    { projectId: 'demo', role: 'owner' },
    { projectId: 'other', role: 'analyst' },
  ],
  passwordHash: secret('password'),
  passkeys: [{ id: SECRET, publicKey: SECRET, counter: 4, transports: [SECRET], name: SECRET, createdAt: 1_000 }],
  openId: { issuer: secret('issuer'), subject: secret('subject') },
  invitation: { hash: secret('invitation'), expiresAt: 5_000, takenBy: null },
  sessionsFrom: 1,
  createdAt: 1_000,
  ...author,
};
const signableKey: SignableKeyRecord = {
  address: '0xaa',
  revision: 2,
  ...scope,
  name: 'minter',
  sealed: secret('sealed'),
  state: 'disabled',
  createdAt: 1_000,
  ...author,
};
const entry: AuditEntryRecord = {
  entryId: '00000000-0000-4000-8000-000000000001',
  happenedAt: 2_000,
  actor: 'ada',
  action: 'session.create',
  projectId: '',
  environmentId: '',
  object: 'account-1',
  detail: '{}',
  address: '192.0.2.7',
  requestId: 'r',
};

interface Case<R> {
  readonly record: R;
  readonly codec: RecordCodec<R>;
  readonly audit: (record: R) => AuditRow[];
  readonly rows: RecordRows<R>;
}
const toCase = <R>(record: R, codec: RecordCodec<R>, derived: Pick<Case<R>, 'audit' | 'rows'>) =>
  ({ record, codec, ...derived }) as unknown as Case<never>;

const CASES: readonly [kind: string, example: Case<never>][] = [
  ['project', toCase(project, projectCodec, { audit: auditOfProject, rows: projectAuditRows })],
  ['key', toCase(key, accessKeyCodec, { audit: auditOfKey, rows: keyAuditRows })],
  [
    'rate-limit-key',
    toCase(rateLimitKey, rateLimitKeyCodec, { audit: auditOfRateLimitKey, rows: rateLimitKeyAuditRows }),
  ],
  ['collection', toCase(collection, collectionCodec, { audit: auditOfCollection, rows: collectionAuditRows })],
  ['account', toCase(account, accountCodec, { audit: auditOfAccount, rows: accountAuditRows })],
  ['signable-key', toCase(signableKey, signableKeyCodec, { audit: auditOfSignableKey, rows: signableKeyAuditRows })],
  ['entry', toCase(entry, auditEntryCodec, { audit: auditOfEntry, rows: entryAuditRows })],
];

it.each(CASES)('audit rows of kind %s have all columns but contain no secrets', (kind, example) => {
  const { record, codec, audit, rows } = example;
  expect(JSON.stringify(audit(record))).not.toContain(SECRET);
  for (const row of audit(record)) {
    expect(row).toMatchObject({ kind, actor: 'ada' });
    expect(row.requestId).toBe(kind === 'entry' ? 'r' : 'request-7');
    expect(row.happenedAt).toBe(2_000);
    expect(JSON.parse(row.detail)).toBeTypeOf('object');
  }
  const out = new RowBuffer(16);
  const decoded = codec.decode(codec.encode(record));
  rows.tables[0]!.addRows(out, decoded, { partition: 1, offset: 2, timestampMs: 3 });
  const columns = EVENT_TABLE_COLUMNS.audit_log;
  const toColumn = (name: string) => name.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  const expected = audit(record).map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [toColumn(name), value])),
  );
  expect(readRows(out.toBytes(), columns)).toEqual(expected);
  expect(Object.keys(expected[0]!).sort()).toEqual(columns.map(({ name }) => name).sort());
});

it('an audit row has the same id for a record that is written twice, and a different id for every other change', () => {
  const change = fc.record({ revision: fc.integer({ min: 1, max: 5 }), requestId: fc.constantFrom('', 'a', 'b') });
  fc.assert(
    fc.property(change, change, (one, other) => {
      const toId = (changes: typeof one) => auditOfCollection({ ...collection, ...changes })[0]!.entryId;
      expect(toId(one) === toId(other)).toBe(one.revision === other.revision && one.requestId === other.requestId);
    }),
  );
});

it.each([
  ['project.create', auditOfProject({ ...project, revision: 1 })],
  ['project.change', auditOfProject(project)],
  ['project.archive', auditOfProject({ ...project, state: 'archived' })],
  ['key.create', auditOfKey(key)],
  ['key.change', auditOfKey({ ...key, revision: 2, action: 'change' })],
  ['key.end', auditOfKey(revoked)],
  ['rate-limit-key.create', auditOfRateLimitKey(rateLimitKey)],
  ['rate-limit-key.end', auditOfRateLimitKey({ ...rateLimitKey, revision: 2, revokedAt: 2_000 })],
  ['collection.create', auditOfCollection(collection)],
  ['collection.unlink', auditOfCollection({ ...collection, revision: 2, state: 'unlinked' })],
  ['account.create', auditOfAccount({ ...account, revision: 1 })],
  ['account.change', auditOfAccount(account)],
  ['account.disable', auditOfAccount({ ...account, state: 'disabled' })],
  ['signable-key.disable', auditOfSignableKey(signableKey)],
  ['session.create', auditOfEntry(entry)],
])('audit rows have the action %s', (action, rows) => {
  expect(rows.map((row) => row.action)).toEqual(rows.map(() => action));
});

it('the audit row of a changed publishable key contains the time at which the key stops', () => {
  const [row, ...others] = auditOfKey(ending);
  expect([row!.action, row!.object, JSON.parse(row!.detail).endsAt, others]).toEqual([
    'key.change',
    'key-2',
    9_000,
    [],
  ]);
});

it('a refreshed key has an audit row for the ended key and one for the new key', () => {
  expect(auditOfKey(refreshed).map(({ object, action }) => [object, action])).toEqual([
    ['key-1', 'key.end'],
    ['key-2', 'key.create'],
  ]);
  expect(auditOfKey(revoked).map(({ object }) => object)).toEqual(['key-1']);
});

it('the audit row of a publishable key contains its allowed origins', () => {
  const origins = ['https://game.example'];
  const changed = auditOfKey({ ...key, kind: 'publishable', live: { ...liveKey, origins }, action: 'change' })[0]!;
  expect(JSON.parse(changed.detail).origins).toEqual(origins);
  expect(auditOfKey(key)[0]!.detail).not.toContain('origins');
});

it('an account has one audit row with all roles for the instance, and one per project with the role in that project', () => {
  const rows = auditOfAccount(account);
  expect(rows.map(({ projectId }) => projectId)).toEqual(['', 'demo', 'other']);
  expect(JSON.parse(rows[0]!.detail)).toMatchObject({ roles: account.roles, hasPassword: true, passkeys: 1 });
  expect(rows[2]!.detail).not.toContain('demo');
  expect(JSON.parse(rows[2]!.detail)).toMatchObject({ role: 'analyst' });
});
