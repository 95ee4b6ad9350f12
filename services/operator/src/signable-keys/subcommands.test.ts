import { PROJECTS, type SignableKeyRecord } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { EXIT, UsageError } from '../command.ts';
import { createKeysCommand, type KeysContext } from '../commands/keys.ts';
import { createProjectsCommand } from '../commands/projects.ts';
import { createMemoryAccess, createMemorySources } from '../test/memory-sources.ts';
import { runInProcess } from '../test/run-in-process.ts';

function createOperator(between: Partial<KeysContext> = {}) {
  const access = createMemoryAccess();
  const context: KeysContext = {
    ...access,
    projects: createMemorySources(PROJECTS),
    prefix: 'svcapik',
    publish: () => Promise.reject(new Error('no stack shows keys that sign')),
    ...between,
  };
  const commands = [createKeysCommand(context), createProjectsCommand(context)];
  const run = async (...args: string[]) => {
    return runInProcess(commands, args, { prompt: async () => 'yes' });
  };
  const keys = async (word: string, ...rest: string[]): Promise<SignableKeyRecord[]> =>
    (await run('keys', word, '--kind', 'signable', ...rest, '--json')).results.map((line) => JSON.parse(line));
  return { run, keys, log: access.signableKeys.log };
}

const minter = ['--environment', 'production', '--name', 'Minter'];

it('keys --kind signable creates, lists, disables and enables a key, and shows its address but never the sealed key', async () => {
  const { run, keys, log } = createOperator();
  const [made] = await keys('create', ...minter);
  const own = { kind: 'signable', environmentId: 'demo-production', name: 'Minter', changedBy: 'ada' };
  expect(made).toMatchObject({ ...own, address: expect.stringMatching(/^0x[0-9a-f]{40}$/), state: 'live' });
  const { address } = made!;
  expect(await keys('disable', ...minter)).toMatchObject([{ address, state: 'disabled' }]);
  const byAddress = ['--environment', 'demo-production', '--name', address];
  expect(await keys('enable', ...byAddress)).toMatchObject([{ address, state: 'live', revision: 3 }]);
  expect(await keys('list')).toMatchObject([{ address }]);
  expect(await keys('list', '--environment', 'development')).toEqual([]);
  const listed = await run('keys', 'list', '--kind', 'signable');
  expect(listed.results).toEqual([expect.stringMatching(/^0x[0-9a-f]{40} {2}demo-production {2}Minter {2}live /)]);
  expect(JSON.stringify([made, listed, await keys('list')])).not.toContain(log.appended[0]!.sealed.slice(0, 20));
});

it('keys --kind signable disables the key of an archived project, and does not enable it', async () => {
  const { run, keys } = createOperator();
  await keys('create', ...minter);
  expect((await run('projects', 'archive', '--project', 'demo')).code).toBe(EXIT.ok);
  expect(await keys('disable', ...minter)).toMatchObject([{ state: 'disabled' }]);
  const enabled = await run('keys', 'enable', '--kind', 'signable', ...minter);
  expect(enabled).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('is archived') });
});

it('keys --kind signable never shows or changes the key of another project', async () => {
  const { run, keys } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  const [made] = await keys('create', ...minter, '--project', 'rival');
  expect(await keys('list')).toEqual([]);
  for (const name of ['Minter', made!.address]) {
    const refused = await run('keys', 'disable', '--kind', 'signable', '--environment', 'production', '--name', name);
    expect(refused).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('no such signable key') });
  }
});

it('keys --kind signable creates nothing without the key of the signer', async () => {
  const signerKey = () => {
    throw new UsageError('SIGNER_PUBLIC_KEY is not set');
  };
  const { run, log } = createOperator({ signerKey });
  const { code, progress } = await run('keys', 'create', '--kind', 'signable', ...minter);
  expect({ code, made: log.appended }).toEqual({ code: EXIT.usage, made: [] });
  expect(progress).toContain('SIGNER_PUBLIC_KEY is not set');
});

it.each([
  ['a key without a name', ['create', '--environment', 'production'], '--name: expected'],
  ['a key of no environment', ['create', '--name', 'N'], '--environment: expected'],
  ['calls', ['create', ...minter, '--calls', '5'], '--calls: not with --kind signable'],
  ['a replacement', ['create', ...minter, '--replace'], '--replace: not with --kind signable'],
  [
    'a refresh, which would be another address',
    ['refresh', ...minter],
    'Allowed choices are publishable, secret, rate-limit',
  ],
])('keys --kind signable refuses %s with exit code 2', async (_what, rest, sentence) => {
  const { code, progress } = await createOperator().run('keys', ...rest, '--kind', 'signable');
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain(sentence);
});

it('keys rebuild continues with the other views when one cannot be rebuilt, names it, and ends with 1', async () => {
  const access = createMemoryAccess();
  const [first, second, ...others] = access.kinds;
  const broken = { ...second!, openLog: () => Promise.reject(new Error('its log is gone')) };
  const { run } = createOperator({ kinds: [first!, broken, ...others] });
  const { code, results, progress } = await run('keys', 'rebuild', '--json');
  expect(code).toBe(EXIT.failed);
  const rebuilt = results.map((line) => JSON.parse(line).kind);
  expect(rebuilt).toEqual([first!.kind.name, ...others.map(({ kind }) => kind.name)]);
  expect(progress).toBe(`keys: ${second!.kind.name} were not rebuilt: its log is gone`);
});
