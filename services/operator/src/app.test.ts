import { ACCESS_KEYS, minuteOf, PROJECTS, type SignableKeyRecord } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { openMemoryPeople } from '@playline/people/memory';
import { expect, it } from 'vitest';
import { EXIT, UnreachableError, UsageError } from './command.ts';
import { createIdentityCommand } from './commands/identity.ts';
import { createKeysCommand, type KeysContext } from './commands/keys.ts';
import { createProjectsCommand } from './commands/projects.ts';
import type { ChangedKey } from './keys/demo-keys.ts';
import { createMemoryAccess, createMemorySources } from './test/memory-sources.ts';
import { runInProcess } from './test/run-in-process.ts';

const nowhere = () => {
  throw new UnreachableError('no address is configured');
};
const unconfigured = {
  openLog: nowhere,
  schemaOf: nowhere,
  clickhouse: nowhere,
  openRecords: nowhere,
  openTables: nowhere,
  pepper: nowhere,
  openUnlinkLog: nowhere,
};

function createOperator(overrides: Partial<KeysContext> = {}) {
  const published: ChangedKey[] = [];
  const people = openMemoryPeople();
  const [keys, projects] = [createMemorySources(ACCESS_KEYS), createMemorySources(PROJECTS)];
  const access = createMemoryAccess();
  const commands = [
    createKeysCommand({
      ...access,
      keys,
      projects,
      prefix: 'svcapik',
      publish: async (changed) => void published.push(changed),
      ...overrides,
    }),
    createProjectsCommand({ keys, projects }),
    createIdentityCommand({ ...unconfigured, generation: 0, topicPrefix: '', openPeople: async () => people }),
  ];
  const run = (...args: string[]) => runInProcess(commands, args, { prompt: async () => 'yes' });
  const signable = async (subcommand: string, ...rest: string[]): Promise<SignableKeyRecord[]> =>
    (await run('keys', subcommand, '--kind', 'signable', ...rest, '--json')).results.map((line) => JSON.parse(line));
  return { run, signable, log: access.signableKeys.log, keys, projects, published };
}

const SIGNABLE = ['--kind', 'signable'];

it.each([
  [['keys', 'list', '--kind', 'ada@example.com']],
  [['keys', 'list', '--kinds=ada@example.com']],
  [['keys', 'list', 'ada@example.com']],
])('the error message for %j does not repeat the invalid value', async (args) => {
  expect((await createOperator().run(...args)).progress).not.toContain('ada@');
});

it.each([
  ['an unknown command', ['unknown'], "unknown command 'unknown'"],
  ['an unknown option', ['keys', 'list', '--unknown'], "unknown option '--unknown'"],
  ['an unknown subcommand', ['keys', 'unknown'], "unknown command 'unknown'"],
  ['an extra argument', ['projects', 'list', 'extra'], 'too many arguments'],
  ['an option without its value', ['keys', 'list', '--project'], "option '--project <id>' argument missing"],
  ['an invalid environment', ['keys', 'create', '--environment', 'Moon', '--kind', 'secret'], '--environment:'],
  [
    'an unknown kind',
    ['keys', 'refresh', '--environment', 'production', '--kind', 'unknown'],
    'Allowed choices are publishable, secret, rate-limit',
  ],
  ['a key without its kind', ['keys', 'revoke', '--environment', 'production'], "required option '--kind <kind>'"],
  ['an empty value', ['keys', 'list', '--environment', ''], 'Expected a value'],
  ['an option as a value', ['projects', 'create', '--name', '--json'], 'Expected a value'],
  [
    'a hexadecimal number',
    ['keys', 'skip-record', '--topic', 't', '--partition', '0x1', '--offset', '1'],
    'Expected a whole number',
  ],
  ['the name of an object property', ['keys', 'constructor'], "unknown command 'constructor'"],
  ['an option of another subcommand', ['keys', 'list', '--replace'], "unknown option '--replace'"],
  ['an invalid project', ['keys', 'list', '--project', 'Démo'], '--project: expected'],
  ['no subcommand', ['keys'], 'Usage: npm run keys'],
  ['a signable key without a name', ['keys', 'create', ...SIGNABLE, '--environment', 'production'], '--name: expected'],
  ['a signable key without an environment', ['keys', 'create', ...SIGNABLE, '--name', 'N'], '--environment: expected'],
  [
    '--calls for a signable key',
    ['keys', 'create', ...SIGNABLE, '--calls', '5'],
    '--calls cannot be used with --kind signable',
  ],
  [
    '--replace for a signable key',
    ['keys', 'create', ...SIGNABLE, '--replace'],
    '--replace cannot be used with --kind signable',
  ],
  [
    'a refresh of a signable key, which would change its address',
    ['keys', 'refresh', ...SIGNABLE],
    'Allowed choices are publ',
  ],
])('the program refuses %s with exit code 2 and an error message', async (_name, args, sentence) => {
  const { code, progress, results } = await createOperator().run(...args);
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain(sentence);
  expect(results).toEqual([]);
});

it('--help exits with code 0 and prints the usage of a command', async () => {
  const { run } = createOperator();
  expect(await run('--help')).toMatchObject({ code: EXIT.ok });
  for (const name of ['keys', 'identity']) {
    const { code, results } = await run(name, '--help');
    expect(code).toBe(EXIT.ok);
    expect(results[0]).toContain(`Usage: npm run ${name}`);
  }
});

async function createOperatorWithProject() {
  const operator = createOperator();
  await operator.run('projects', 'create', '--name', 'Outlands', '--id', 'outlands');
  return operator;
}

const create = [
  ...['keys', 'create', '--environment', 'production', '--kind', 'publishable', '--project', 'outlands', '--json'],
];

it('keys create prints the new key, and keys list shows publishable keys but never secret keys', async () => {
  const { run } = await createOperatorWithProject();
  const created = JSON.parse((await run(...create, '--name', 'Unity')).results[0]!);
  expect(created).toEqual({
    keyId: expect.any(String),
    environmentId: 'outlands-production',
    environment: 'production',
    kind: 'publishable',
    key: expect.stringMatching(/^pk_svcapik-[0-9A-Za-z]{36}$/),
  });
  const listed = await run('keys', 'list', '--project', 'outlands', '--json');
  const shown = { keyId: created.keyId, revokedAt: null, name: 'Unity', text: created.key };
  expect(JSON.parse(listed.results[0]!)).toMatchObject(shown);
  const secret = ['keys', 'create', '--project', 'outlands', '--environment', 'production', '--kind', 'secret'];
  const hidden = JSON.parse((await run(...secret, '--json')).results[0]!);
  const [, relisted] = (await run('keys', 'list', '--project', 'outlands', '--json')).results;
  expect(JSON.parse(relisted!)).toMatchObject({ keyId: hidden.keyId, text: null });
  expect(relisted).not.toContain(hidden.key);
  expect(listed.results.join()).not.toContain('hash');
  expect((await run('keys', 'list')).results).toEqual([]);
});

it('keys create --replace revokes the live key, if any, and creates a new key', async () => {
  const { run } = createOperator();
  const replace = ['keys', 'create', '--environment', 'development', '--kind', 'secret', '--replace', '--json'];
  const [first, second] = [await run(...replace), await run(...replace)];
  const [firstId, secondId] = [first, second].map(({ results }) => JSON.parse(results[0]!).keyId);
  const listed = (await run('keys', 'list', '--json')).results.map((line) => JSON.parse(line));
  expect(listed).toMatchObject([
    { keyId: firstId, revokedAt: expect.any(Number) },
    { keyId: secondId, revokedAt: null },
  ]);
});

const argsFor = (name: string) => ['keys', name, '--environment', 'development', '--kind', 'secret', '--json'];

it('keys refresh and keys revoke end the live key, and update the keys of the local stack', async () => {
  const { run, published, keys } = createOperator();
  const created = JSON.parse((await run(...argsFor('create'))).results[0]!);
  const refreshed = JSON.parse((await run(...argsFor('refresh'))).results[0]!);
  expect(refreshed.key).not.toBe(created.key);
  const listed = await run('keys', 'list', '--json');
  expect(listed.results.map((line) => JSON.parse(line))).toMatchObject([
    { keyId: created.keyId, state: 'ended' },
    { keyId: refreshed.keyId, state: 'live' },
  ]);
  const revoked = JSON.parse((await run(...argsFor('revoke'))).results[0]!);
  expect(revoked).toMatchObject({ keyId: refreshed.keyId, state: 'ended' });
  expect(published.map(({ key }) => key)).toEqual([created.key, refreshed.key, '']);
  for (const key of [created.key, refreshed.key]) {
    expect(listed.results.join()).not.toContain(key);
    expect(JSON.stringify(keys.log.appended)).not.toContain(key.slice(-36));
  }
  expect(JSON.stringify([listed, revoked])).not.toContain('hash');
});

const publishable = ['--environment', 'development', '--kind', 'publishable', '--json'];

it('keys refresh --stops keeps the old publishable key live until then, and keys revoke --stops changes or removes its end', async () => {
  const { run, published } = createOperator();
  const change = async (name: string, ...rest: string[]) =>
    JSON.parse((await run('keys', name, ...publishable, ...rest)).results[0]!);
  const first = await change('create', '--name', 'iOS 1');
  const inDays = (days: number) => expect.closeTo(Date.now() + days * 86_400_000, -4);
  const second = await change('refresh', '--name', 'iOS 2', '--stops', '7d');
  const listed = (await run('keys', 'list', '--json')).results.map((line) => JSON.parse(line));
  expect(listed).toMatchObject([
    { keyId: first.keyId, name: 'iOS 1', state: 'live', endsAt: inDays(7) },
    { keyId: second.keyId, name: 'iOS 2', state: 'live', endsAt: null, limitId: first.keyId },
  ]);
  const line = / {2}iOS 1 {2}created \S+ {2}live until \S+Z /;
  expect((await run('keys', 'list')).results[0]).toMatch(line);
  const named = ['--id', first.keyId];
  expect(await change('revoke', ...named, '--stops', '14d')).toMatchObject({ endsAt: inDays(14) });
  expect(await change('revoke', ...named, '--stops', 'never')).toMatchObject({ endsAt: null });
  const ambiguous = await run('keys', 'revoke', ...publishable);
  expect(ambiguous).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('2 live publishable keys') });
  expect(await change('revoke', ...named)).toMatchObject({ keyId: first.keyId, state: 'ended' });
  expect(published.map(({ key }) => key)).toEqual([first.key, second.key, second.key, first.key, second.key]);
});

it('keys refresh and keys revoke require --stops for a publishable key that clients used in the last hour', async () => {
  const usage = createMemoryKeyUsage();
  const { run } = createOperator({ openUsage: async () => ({ ...usage, close: async () => {} }) });
  const { keyId } = JSON.parse((await run('keys', 'create', ...publishable)).results[0]!);
  const lastUsedAt = Date.now();
  const used = { keyId, uses: 2, refusals: 0, messages: 40, lastUsedAt, lastRefusal: null };
  await usage.add({ minuteAt: minuteOf(lastUsedAt), keys: [used], environments: [] });
  expect((await run('keys', 'list')).results[0]).toContain('; messages in the last hour: 40, day: 40');
  for (const name of ['refresh', 'revoke']) {
    const { code, progress } = await run('keys', name, ...publishable);
    expect({ code, progress }).toEqual({ code: EXIT.usage, progress: expect.stringContaining('2 requests') });
    expect(progress).toContain('--stops now, 24h, 7d');
  }
  expect((await run('keys', 'refresh', ...publishable, '--stops', 'now')).code).toBe(EXIT.ok);
});

it.each([['2d3h'], ['tomorrow'], ['2020-01-01'], ['9999d'], ['now', 'secret']])(
  'keys revoke refuses --stops %s',
  async (stops, kind = 'publishable') => {
    const { run } = createOperator();
    const key = ['--environment', 'development', '--kind', kind];
    await run('keys', 'create', ...key);
    expect((await run('keys', 'revoke', ...key, '--stops', stops)).code).not.toBe(EXIT.ok);
    expect((await run('keys', 'list')).results[0]).toContain('  live  ');
  },
);

it('keys list without --json shows parts of each key, its creation time, state and last use', async () => {
  const { run } = createOperator();
  const { key } = JSON.parse((await run(...argsFor('create'))).results[0]!);
  const [line] = (await run('keys', 'list')).results;
  expect(line).toMatch(/ demo-development {2}secret {2}\w{4}…\w{4} {2}created \d{4}-\S+Z {2}live {2}never used$/);
  expect(line).toContain(`…${key.slice(-4)}`);
  expect((await run('keys', 'list', '--kind', 'publishable')).results).toEqual([]);
  expect((await run('keys', 'list', '--kind', 'secret', '--environment', 'development')).results).toEqual([line]);
});

it.each(['refresh', 'revoke'])('keys %s exits with code 1 if there is no live key', async (subcommand) => {
  const { code, progress, results } = await createOperator().run(...argsFor(subcommand));
  expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
  expect(progress).toContain('no live key');
});

it('identity init creates the epoch only once if it is run twice', async () => {
  const { run } = createOperator();
  const [first, second] = [await run('identity', 'init'), await run('identity', 'init')];
  expect(first).toMatchObject({ code: EXIT.ok });
  expect(second.results).toEqual(first.results);
});

const minter = ['--environment', 'production', '--name', 'Minter'];

it('keys --kind signable creates, lists, disables and enables a key, and never prints the encrypted private key', async () => {
  const { run, signable, log, published } = createOperator();
  const [created] = await signable('create', ...minter);
  const expected = { kind: 'signable', environmentId: 'demo-production', name: 'Minter', changedBy: 'ada' };
  expect(created).toMatchObject({ ...expected, address: expect.stringMatching(/^0x[0-9a-f]{40}$/), state: 'live' });
  const { address } = created!;
  expect(await signable('disable', ...minter)).toMatchObject([{ address, state: 'disabled' }]);
  const byAddress = ['--environment', 'demo-production', '--name', address];
  expect(await signable('enable', ...byAddress)).toMatchObject([{ address, state: 'live', revision: 3 }]);
  expect(await signable('list')).toMatchObject([{ address }]);
  expect(await signable('list', '--environment', 'development')).toEqual([]);
  const listed = await run('keys', 'list', '--kind', 'signable');
  expect(listed.results).toEqual([expect.stringMatching(/^0x[0-9a-f]{40} {2}demo-production {2}Minter {2}live /)]);
  expect(published).toEqual([]);
  expect(JSON.stringify([created, listed, await signable('list')])).not.toContain(log.appended[0]!.sealed.slice(0, 20));
});

it('keys --kind signable can disable a key of an archived project, but cannot enable the key', async () => {
  const { run, signable } = createOperator();
  await signable('create', ...minter);
  expect((await run('projects', 'archive', '--project', 'demo')).code).toBe(EXIT.ok);
  expect(await signable('disable', ...minter)).toMatchObject([{ state: 'disabled' }]);
  const enabled = await run('keys', 'enable', '--kind', 'signable', ...minter);
  expect(enabled).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('is archived') });
});

it("keys --kind signable never shows or changes another project's key", async () => {
  const { run, signable } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  const [created] = await signable('create', ...minter, '--project', 'rival');
  expect(await signable('list')).toEqual([]);
  for (const name of ['Minter', created!.address]) {
    const refused = await run('keys', 'disable', '--kind', 'signable', '--environment', 'production', '--name', name);
    expect(refused).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('key does not exist') });
  }
});

it("keys create --kind signable fails without the signer's public key", async () => {
  const signerKey = () => {
    throw new UsageError('SIGNER_PUBLIC_KEY is not set');
  };
  const { run, log } = createOperator({ signerKey });
  const { code, progress } = await run('keys', 'create', '--kind', 'signable', ...minter);
  expect({ code, created: log.appended }).toEqual({ code: EXIT.usage, created: [] });
  expect(progress).toContain('SIGNER_PUBLIC_KEY is not set');
});

it('keys rebuild restores all other records if one log cannot be read, and exits with code 1', async () => {
  const access = createMemoryAccess();
  const [first, second, ...others] = access.kinds;
  const broken = { ...second!, openLog: () => Promise.reject(new Error('the log does not exist')) };
  const { run } = createOperator({ kinds: [first!, broken, ...others] });
  const { code, results, progress } = await run('keys', 'rebuild', '--json');
  expect(code).toBe(EXIT.failed);
  const rebuilt = results.map((line) => JSON.parse(line).kind);
  expect(rebuilt).toEqual([first!.kind.name, ...others.map(({ kind }) => kind.name)]);
  expect(progress).toBe(`keys: ${second!.kind.name} were not rebuilt: the log does not exist`);
});
