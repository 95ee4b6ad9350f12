import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { ACCOUNTS, acceptInvitation, createFirstAdministrator, isSessionOf, PROJECTS } from '@playline/access-keys';
import { openRedisSessions } from '@playline/access-keys/redis';
import { accountCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { bareEnvironment } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { createAccountsCommand, withAccounts } from '../commands/accounts.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { openRecordStores, type RecordStores } from '../test/record-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';

let recordStores: RecordStores;
let context: ReturnType<typeof createContext>;
beforeAll(async () => {
  recordStores = await openRecordStores();
  context = createContext();
});
afterAll(() => recordStores?.close());

function createContext() {
  const author = { changedBy: 'ada', requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(recordStores.createStores(), { topicPrefix: recordStores.topicPrefix, author });
  return {
    accounts: sourcesOf(ACCOUNTS),
    projects: sourcesOf(PROJECTS),
    portal: () => 'http://localhost:8090',
    openSessions: () => openRedisSessions({ url: recordStores.redis.url }),
  };
}

async function run(context: ReturnType<typeof createContext>, ...args: string[]) {
  const { code, results, progress } = await runInProcess(
    [createAccountsCommand(context)],
    ['accounts', ...args, '--json'],
  );
  return { code, records: results.map((line) => JSON.parse(line)), progress };
}

async function logged() {
  const records = await recordStores.createStores().readTopic(recordStores.topicPrefix + TOPICS.accounts.name);
  return records.map(({ value }) => accountCodec.decode(value!.subarray(FRAME_BYTES)));
}

const personOf = (login: string) => ({ login, name: login, passwordHash: 'hash', passkey: null });
const codeIn = (link: string) => new URL(link).searchParams.get('code')!;

it('accounts link fails once an administrator exists, even after Redis was emptied', async () => {
  expect((await run(context, 'link')).code).toBe(EXIT.ok);
  const createAdministrator = (login: string) =>
    withAccounts(createContext(), (accounts) => createFirstAdministrator(accounts, personOf(login)));
  const created = await Promise.allSettled(['root', 'eve', 'mallory'].map(createAdministrator));
  expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const removeData of [
    () => recordStores.redis.client.flushdb(),
    () => recordStores.redis.client.del('access:accounts'),
  ]) {
    await removeData();
    const refused = await run(context, 'link');
    expect(refused).toMatchObject({ code: EXIT.failed, records: [] });
    expect(refused.progress).toContain('has an administrator');
  }
  await recordStores.redis.client.flushdb();
  await expect(createAdministrator('eve')).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
});

it('only one of two concurrent processes can accept an invitation, and every change is logged', async () => {
  const [{ link, account }] = (await run(context, 'invite', '--name', 'Bob', '--project', 'demo', '--role', 'owner'))
    .records;
  const accept = (login: string) =>
    withAccounts(createContext(), (accounts) =>
      acceptInvitation(accounts, { text: codeIn(link), person: personOf(login) }),
    );
  const results = await Promise.allSettled(['bob', 'eve'].map(accept));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const records = (await logged()).filter(({ id }) => id === account);
  expect(records).toMatchObject([
    { revision: 1, state: 'invited', changedBy: 'ada', roles: [{ projectId: 'demo', role: 'owner' }] },
    { revision: 2, state: 'live', invitation: null },
  ]);
  expect(JSON.stringify(records)).not.toContain(codeIn(link));
});

it('a changed account invalidates its sessions, even if the command is killed before it deletes the sessions', async () => {
  const [{ link }] = (await run(context, 'invite', '--name', 'Kim', '--project', 'demo', '--role', 'analyst')).records;
  const kim = await withAccounts(context, (accounts) =>
    acceptInvitation(accounts, { text: codeIn(link), person: personOf('kim') }),
  );
  const { sessions, close } = await openRedisSessions({ url: recordStores.redis.url });
  const newSession = { accountId: kim.id, accountRevision: kim.revision, userAgent: '', address: '' };
  const { text } = await sessions.create(newSession);
  const settings = {
    REDIS: recordStores.redis.url,
    BROKERS: recordStores.brokers.join(','),
    REGISTRY: recordStores.registry,
    TOPIC_PREFIX: recordStores.topicPrefix,
  };
  const main = fileURLToPath(new URL('./test/kill-before-sessions-end.ts', import.meta.url));
  const child = spawn(process.execPath, [main, kim.id], {
    env: { ...bareEnvironment(), ...settings },
    stdio: 'inherit',
  });
  expect(await new Promise((done) => child.once('exit', (_, signal) => done(signal)))).toBe('SIGKILL');
  const session = await sessions.find(text);
  expect(session).toMatchObject({ accountId: kim.id });
  const [changed] = (await run(context, 'list')).records.filter(({ id }) => id === kim.id);
  expect(changed).toMatchObject({ isAdministrator: true });
  expect(isSessionOf(session!, changed)).toBe(false);
  await close();
});

it('two concurrent commands cannot disable the last two owners of a project', async () => {
  const [{ link }] = (await run(context, 'invite', '--name', 'Pia', '--project', 'demo', '--role', 'owner')).records;
  await withAccounts(context, (accounts) =>
    acceptInvitation(accounts, { text: codeIn(link), person: personOf('pia') }),
  );
  const owners = (await run(context, 'list')).records.filter(({ roles }) => roles[0]?.role === 'owner');
  expect(owners).toHaveLength(2);
  const disabled = await Promise.all(owners.map(({ id }) => run(createContext(), 'disable', '--account', id)));
  expect(disabled.map(({ code }) => code).toSorted()).toEqual([EXIT.ok, EXIT.failed]);
});
