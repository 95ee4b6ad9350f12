import {
  ACCOUNTS,
  acceptInvitation,
  createFirstAdministrator,
  createRecordStore,
  linkOpenId,
  PROJECTS,
  setPassword,
} from '@playline/access-keys';
import { createMemorySessions } from '@playline/access-keys/test';
import { expect, it } from 'vitest';
import { EXIT, UnreachableError } from '../command.ts';
import { createMemorySources } from '../test/memory-sources.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createAccountsCommand } from './accounts.ts';

function createOperator(answer?: string, portal: string | null = 'http://localhost:8090') {
  const [accounts, sessions] = [createMemorySources(ACCOUNTS), createMemorySessions()];
  const context = {
    accounts,
    projects: createMemorySources(PROJECTS),
    portal: () => portal,
    openSessions: async () => ({ ...sessions, ready: async () => true, close: async () => {} }),
  };
  const prompt = answer === undefined ? {} : { prompt: async () => answer };
  const run = (...args: string[]) => runInProcess([createAccountsCommand(context)], ['accounts', ...args], prompt);
  const json = async (...args: string[]) => {
    const { results, progress } = await run(...args, '--json');
    if (results.length === 0) throw new Error(progress);
    return results.map((line) => JSON.parse(line));
  };
  const store = createRecordStore(accounts, { changedBy: 'portal', requestId: 'r' });
  const selfService = { store, sessions: sessions.sessions, actorId: null };
  const codeOf = (link: string) => new URL(link).searchParams.get('code')!;
  const personOf = (login: string) => ({ login, name: `Name of ${login}`, passwordHash: 'kept-hash', passkey: null });
  const accept = (link: string, login: string) =>
    acceptInvitation(selfService, { text: codeOf(link), person: personOf(login) });
  const invited = async (login: string, ...rest: string[]) =>
    accept((await json('invite', '--name', login, ...rest))[0].link, login);
  const first = () => createFirstAdministrator(selfService, personOf('root'));
  return { run, json, accounts, ...sessions, selfService, accept, invited, first, codeOf };
}

const OWNER = ['--project', 'demo', '--role', 'owner'] as const;

it('accounts link prints a link for the first administrator, and fails once the log contains an administrator', async () => {
  const { run, first, accounts, oneTimeTokens, codeOf } = createOperator();
  const { results, progress, code } = await run('link');
  expect(code).toBe(EXIT.ok);
  expect(results).toHaveLength(1);
  expect(results[0]).toMatch(/^http:\/\/localhost:8090\/first-sign-in\?code=[\w-]{43}$/);
  expect(progress).toContain('15 minutes');
  expect(await oneTimeTokens.read({ purpose: 'first-administrator', text: codeOf(results[0]!) })).toBe('');
  await first();
  accounts.view.empty();
  const refused = await run('link');
  expect(refused).toMatchObject({ code: EXIT.failed, results: [] });
  expect(refused.progress).toContain('has an administrator');
  accounts.openLog = () => Promise.reject(new UnreachableError('Kafka does not respond'));
  expect(await run('link')).toMatchObject({ code: EXIT.unreachable, results: [] });
});

it('the accounts command prints links to the portal in --origin, and fails without a portal', async () => {
  const { run } = createOperator(undefined, null);
  for (const rest of [['link'], ['invite', '--name', 'Ada', '--administrator'], ['reset', '--account', 'ada']])
    expect((await run(...rest)).code).toBe(EXIT.unreachable);
  const { results } = await run('link', '--origin', 'https://portal.example.com/');
  expect(results[0]).toMatch(/^https:\/\/portal\.example\.com\/first-sign-in\?code=/);
  for (const origin of [
    'portal.example.com',
    'ftp://portal.example.com',
    'https://portal.example.com/x',
    'https://a:b@c',
  ])
    expect((await run('link', '--origin', origin)).code).toBe(EXIT.usage);
});

it('the accounts command invites, lists and changes accounts, and ends the sessions of a disabled account', async () => {
  const { run, json, invited, sessions } = createOperator();
  const ada = await invited('ada', ...OWNER, '--administrator');
  const bob = await invited('bob', '--project', 'demo', '--role', 'analyst');
  const [shown] = await json('roles', '--account', 'BOB', '--project', 'demo', '--role', 'developer');
  expect(shown).toMatchObject({ id: bob.id, roles: [{ projectId: 'demo', role: 'developer' }], changedBy: 'ada' });
  const { text } = await sessions.create({ accountId: bob.id, userAgent: '', address: '' });
  expect((await json('disable', '--account', 'bob'))[0]).toMatchObject({ state: 'disabled' });
  expect(await sessions.find(text)).toBeNull();
  expect((await json('enable', '--account', bob.id))[0]).toMatchObject({ state: 'live' });
  expect((await json('administrator', '--account', 'bob', '--is', 'yes'))[0]).toMatchObject({ isAdministrator: true });
  expect((await json('roles', '--account', 'bob', '--project', 'demo', '--role', 'none'))[0]).toMatchObject({
    roles: [],
  });
  expect((await json('list')).map(({ id }) => id)).toEqual([ada.id, bob.id]);
  expect((await run('list')).results[1]).toContain('bob  Name of bob  live  administrator  password');
});

it('accounts unlink fails if the account has no other sign-in method', async () => {
  const { run, json, invited, selfService: context } = createOperator();
  const ada = await invited('ada', ...OWNER);
  const openId = { issuer: 'https://id.example', subject: 'secret subject' };
  await linkOpenId(context, { accountId: ada.id, openId });
  expect((await run('list')).results[0]).toContain('password, https://id.example');
  const unlink = ['unlink', '--account', 'ada'];
  const [shown] = await json(...unlink);
  expect(shown).toMatchObject({ openIdIssuer: null, hasPassword: true });
  expect((await run(...unlink)).progress).toContain('not linked');
  await linkOpenId(context, { accountId: ada.id, openId });
  await setPassword(context, { accountId: ada.id, passwordHash: null });
  expect(await run(...unlink)).toMatchObject({ code: EXIT.failed, results: [] });
  expect(JSON.stringify(await json('list'))).not.toContain('secret subject');
});

it('the accounts command prints no credentials except links, and each link only once', async () => {
  const { run, json, invited, accounts } = createOperator();
  await invited('ada', ...OWNER);
  const [{ link }] = await json('invite', '--name', 'Bob', ...OWNER);
  const [{ link: reset }] = await json('reset', '--account', 'ada');
  expect(reset).toMatch(/\/reset\?code=/);
  const printed = [...(await run('list')).results, ...(await run('list', '--json')).results].join('\n');
  for (const secret of ['kept-hash', new URL(link).searchParams.get('code')!, ...hashesIn(accounts.log.appended)])
    expect(printed).not.toContain(secret);
  expect(JSON.stringify(accounts.log.appended)).not.toContain(new URL(link).searchParams.get('code'));
});

it('accounts revoke invalidates an invitation, and accounts reset restores access to an account', async () => {
  const { run, json, invited, accept } = createOperator();
  await invited('ada', ...OWNER);
  const [{ account, link }] = await json('invite', '--name', 'Bob', ...OWNER);
  expect((await run('revoke', '--account', account)).code).toBe(EXIT.ok);
  await expect(accept(link, 'bob')).rejects.toThrow('Request another');
  const [{ link: reset }] = await json('reset', '--account', 'ada');
  expect(await accept(reset, 'other')).toMatchObject({ login: 'ada', passwordHash: 'kept-hash' });
});

it('accounts remove erases an account only after confirmation, and never the last owner', async () => {
  for (const [answer, code] of [
    ['no', EXIT.failed],
    ['yes', EXIT.ok],
  ] as const) {
    const { run, invited, json } = createOperator(answer);
    await invited('ada', ...OWNER);
    await invited('bob', ...OWNER);
    expect((await run('remove', '--account', 'bob')).code).toBe(code);
    expect(await json('list')).toHaveLength(answer === 'yes' ? 1 : 2);
  }
  const { run, invited } = createOperator();
  await invited('ada', ...OWNER);
  expect((await run('remove', '--account', 'ada')).code).toBe(EXIT.usage);
  const last = await run('remove', '--account', 'ada', '--yes');
  expect(last).toMatchObject({ code: EXIT.failed });
  expect(last.progress).toContain('last owner');
});

it('the accounts command refuses invalid arguments, and reports unknown accounts and projects', async () => {
  const { run } = createOperator();
  for (const rest of [
    [],
    ['unknown'],
    ['list', '--unknown'],
    ['invite', '--name', 'Ada'],
    ['invite', '--name', 'Ada', '--project', 'demo'],
    ['invite', '--project', 'demo', '--role', 'owner'],
    ['roles', '--account', 'ada', '--project', 'demo', '--role', 'unknown'],
    ['administrator', '--account', 'ada', '--is', 'unknown'],
    ['disable'],
  ])
    expect([rest, (await run(...rest)).code]).toEqual([rest, EXIT.usage]);
  expect((await run('disable', '--account', 'ada')).progress).toContain('npm run accounts -- list');
  const missing = await run('invite', '--name', 'Ada', '--project', 'nowhere', '--role', 'owner');
  expect(missing).toMatchObject({ code: EXIT.failed });
  expect(missing.progress).toContain('npm run projects -- list');
  expect((await run('list')).progress).toContain('accounts -- link');
});

function hashesIn(records: readonly { readonly invitation: { readonly hash: string } | null }[]): string[] {
  return records.flatMap(({ invitation }) => invitation?.hash ?? []);
}
