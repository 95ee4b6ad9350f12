import { ACCESS_KEYS, PROJECTS } from '@playline/access-keys';
import { openMemoryPeople } from '@playline/people/memory';
import { expect, it } from 'vitest';
import { EXIT, UnreachableError } from './command.ts';
import { createIdentityCommand } from './commands/identity.ts';
import { createKeysCommand } from './commands/keys.ts';
import { createProjectsCommand } from './commands/projects.ts';
import type { ChangedKey } from './keys/demo-keys.ts';
import { createMemoryAccess, createMemorySources } from './test/memory-sources.ts';
import { runInProcess } from './test/run-in-process.ts';

const nowhere = () => {
  throw new UnreachableError('no address is configured');
};
/** Only the address of Redis is configured. */
const unconfigured = {
  openLog: nowhere,
  schemaOf: nowhere,
  clickhouse: nowhere,
  openRecords: nowhere,
  openTables: nowhere,
  pepper: nowhere,
  openUnlinkLog: nowhere,
};

/** An operator with memory stores that outlive a command. */
function createOperator() {
  const published: ChangedKey[] = [];
  const people = openMemoryPeople();
  const [keys, projects] = [createMemorySources(ACCESS_KEYS), createMemorySources(PROJECTS)];
  const commands = [
    createKeysCommand({
      ...createMemoryAccess(),
      keys,
      projects,
      prefix: 'svcapik',
      publish: async (changed) => void published.push(changed),
    }),
    createProjectsCommand({ keys, projects }),
    createIdentityCommand({ ...unconfigured, generation: 0, topicPrefix: '', openPeople: async () => people }),
  ];
  return { run: (...args: string[]) => runInProcess(commands, args), keys, projects, published };
}

it.each([
  [['keys', 'list', '--kind', 'ada@example.com']],
  [['keys', 'list', '--kinds=ada@example.com']],
  [['keys', 'list', 'ada@example.com']],
])('the program repeats no value of %j in its error', async (args) => {
  expect((await createOperator().run(...args)).progress).not.toContain('ada@');
});

it.each([
  ['an unknown command', ['fly'], "unknown command 'fly'"],
  ['an unknown option', ['keys', 'list', '--fast'], "unknown option '--fast'"],
  ['an unknown subcommand', ['keys', 'eat'], "unknown command 'eat'"],
  ['an argument too many', ['projects', 'list', 'now'], 'too many arguments'],
  ['an option without its value', ['keys', 'list', '--project'], "option '--project <id>' argument missing"],
  ['an invalid environment', ['keys', 'create', '--environment', 'Moon', '--kind', 'secret'], '--environment:'],
  [
    'an unknown kind',
    ['keys', 'refresh', '--environment', 'production', '--kind', 'blue'],
    'Allowed choices are publishable, secret, rate-limit',
  ],
  ['a key without its kind', ['keys', 'revoke', '--environment', 'production'], "required option '--kind <kind>'"],
  ['an empty value', ['keys', 'list', '--environment', ''], 'Expected a value'],
  ['an option as a value', ['projects', 'create', '--name', '--json'], 'Expected a value'],
  [
    'a number that is not written in digits',
    ['keys', 'pass-over', '--topic', 't', '--partition', '0x1', '--offset', '1'],
    'Expected a whole number',
  ],
  ['a property name of objects', ['keys', 'constructor'], "unknown command 'constructor'"],
  ['an option of another subcommand', ['keys', 'list', '--replace'], "unknown option '--replace'"],
  ['an invalid project', ['keys', 'list', '--project', 'Démo'], '--project: expected'],
  ['no subcommand', ['keys'], 'Usage: npm run keys'],
])('the program refuses %s with a sentence and exit code 2', async (_name, args, sentence) => {
  const { code, progress, results } = await createOperator().run(...args);
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain(sentence);
  expect(results).toEqual([]);
});

it('the program lists its commands, and the options of each', async () => {
  const { run } = createOperator();
  expect(await run('--help')).toMatchObject({ code: EXIT.ok });
  for (const name of ['keys', 'identity']) {
    const { code, results } = await run(name, '--help');
    expect(code).toBe(EXIT.ok);
    expect(results[0]).toContain(`Usage: npm run ${name}`);
  }
});

/** With a project that was created later. */
async function createOutlands() {
  const operator = createOperator();
  await operator.run('projects', 'create', '--name', 'Outlands', '--id', 'outlands');
  return operator;
}

const create = [
  'keys',
  'create',
  '--environment',
  'production',
  '--kind',
  'publishable',
  '--project',
  'outlands',
  '--json',
];

it('keys create makes a key, shows it, and lists it by name; the text of a secret key is never shown again', async () => {
  const { run } = await createOutlands();
  const made = JSON.parse((await run(...create, '--name', 'Unity')).results[0]!);
  expect(made).toEqual({
    keyId: expect.any(String),
    environmentId: 'outlands-production',
    environment: 'production',
    kind: 'publishable',
    key: expect.stringMatching(/^pk_svcapik-[0-9A-Za-z]{36}$/),
  });
  const listed = await run('keys', 'list', '--project', 'outlands', '--json');
  const shown = { keyId: made.keyId, revokedAt: null, name: 'Unity', text: made.key };
  expect(JSON.parse(listed.results[0]!)).toMatchObject(shown);
  const secret = ['keys', 'create', '--project', 'outlands', '--environment', 'production', '--kind', 'secret'];
  const hidden = JSON.parse((await run(...secret, '--json')).results[0]!);
  const [, relisted] = (await run('keys', 'list', '--project', 'outlands', '--json')).results;
  expect(JSON.parse(relisted!)).toMatchObject({ keyId: hidden.keyId, text: null });
  expect(relisted).not.toContain(hidden.key);
  expect(listed.results.join()).not.toContain('hash');
  expect((await run('keys', 'list')).results).toEqual([]);
});

it('keys create --replace ends the live key and creates its successor, or the first key', async () => {
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

const of = (word: string) => ['keys', word, '--environment', 'development', '--kind', 'secret', '--json'];

it('keys refresh and revoke show the successor once, update the stack, and list the old key as ended', async () => {
  const { run, published, keys } = createOperator();
  const made = JSON.parse((await run(...of('create'))).results[0]!);
  const refreshed = JSON.parse((await run(...of('refresh'))).results[0]!);
  expect(refreshed.key).not.toBe(made.key);
  const listed = await run('keys', 'list', '--json');
  expect(listed.results.map((line) => JSON.parse(line))).toMatchObject([
    { keyId: made.keyId, state: 'ended' },
    { keyId: refreshed.keyId, state: 'live' },
  ]);
  const revoked = JSON.parse((await run(...of('revoke'))).results[0]!);
  expect(revoked).toMatchObject({ keyId: refreshed.keyId, state: 'ended' });
  expect(published.map(({ key }) => key)).toEqual([made.key, refreshed.key, '']);
  for (const key of [made.key, refreshed.key]) {
    expect(listed.results.join()).not.toContain(key);
    expect(JSON.stringify(keys.log.appended)).not.toContain(key.slice(-36));
  }
  expect(JSON.stringify([listed, revoked])).not.toContain('hash');
});

it('keys list for people shows first and last four characters, creation, state and use', async () => {
  const { run } = createOperator();
  const { key } = JSON.parse((await run(...of('create'))).results[0]!);
  const [line] = (await run('keys', 'list')).results;
  expect(line).toMatch(/ demo-development {2}secret {2}\w{4}…\w{4} {2}created \d{4}-\S+Z {2}live {2}not seen in use$/);
  expect(line).toContain(`…${key.slice(-4)}`);
  expect((await run('keys', 'list', '--kind', 'publishable')).results).toEqual([]);
  expect((await run('keys', 'list', '--kind', 'secret', '--environment', 'development')).results).toEqual([line]);
});

it.each(['refresh', 'revoke'])('%s fails with exit code 1 when there is no live key', async (word) => {
  const { code, progress, results } = await createOperator().run(...of(word));
  expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
  expect(progress).toContain('no live key');
});

it('identity init mints the epoch once, however often it runs', async () => {
  const { run } = createOperator();
  const [first, again] = [await run('identity', 'init'), await run('identity', 'init')];
  expect(first).toMatchObject({ code: EXIT.ok });
  expect(again.results).toEqual(first.results);
});
