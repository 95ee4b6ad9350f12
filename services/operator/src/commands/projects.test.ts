import { COLLECTIONS, type CollectionRecord, PROJECTS, type ProjectRecord } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { createMemoryAccess, createMemorySources } from '../test/memory-sources.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createCollectionsCommand } from './collections.ts';
import { createKeysCommand } from './keys.ts';
import { createProjectsCommand } from './projects.ts';

/** The commands with in-memory stores that all runs share. @param answer to confirmation prompts */
function createOperator(answer?: string, { hasCode = true } = {}) {
  const [access, projects] = [createMemoryAccess(), createMemorySources(PROJECTS)];
  const printed: string[] = [];
  const context = { ...access, projects };
  const collections = createMemorySources(COLLECTIONS);
  const commands = [
    createProjectsCommand(context),
    createKeysCommand({ ...context, prefix: 'svcapik', publish: async ({ key }) => void printed.push(key) }),
    createCollectionsCommand({
      ...context,
      collections,
      servedChains: () => ['demo-chain'],
      readCode: async () => hasCode,
    }),
  ];
  const run = async (...args: string[]) => {
    const prompt = answer === undefined ? {} : { prompt: async () => answer };
    const { code, results, progress } = await runInProcess(commands, args, prompt);
    const records: ProjectRecord[] = args.includes('--json') ? results.map((line) => JSON.parse(line)) : [];
    return { code, results, records, progress };
  };
  const runOne = async (...args: string[]) => (await run(...args, '--json')).records[0]!;
  const runCollections = async (...args: string[]): Promise<CollectionRecord[]> =>
    (await runInProcess(commands, ['collections', ...args, '--json'])).results.map((line) => JSON.parse(line));
  return { run, runOne, runCollections, collections, keys: access.keys, projects, printed };
}

const secretIn = (project: string, environment: string) =>
  ['keys', 'create', '--project', project, '--environment', environment, '--kind', 'secret', '--json'] as const;

it('projects list creates the project demo once in a new deployment', async () => {
  const { run } = createOperator();
  for (const _ of [1, 2]) {
    const { records } = await run('projects', 'list', '--json');
    expect(records).toMatchObject([{ id: 'demo', state: 'live', revision: 1, changedBy: 'ada', requestId: 'r-1' }]);
    expect(records[0]!.environments).toMatchObject([
      { id: 'demo-production', name: 'production', kind: 'production', cap: null, limit: null },
      { id: 'demo-development', name: 'development', kind: 'development' },
    ]);
  }
});

it('keys create finds an environment by its full id, and names its project if --project is wrong', async () => {
  const { run, runOne } = createOperator();
  const space = await runOne('projects', 'create', '--name', 'space');
  const environmentId = space.environments[0]!.id;
  const createKey = ['keys', 'create', '--environment', environmentId, '--kind', 'secret'];
  expect((await run(...createKey, '--json')).results.join()).toContain(`"environmentId":"${environmentId}"`);
  await runOne('projects', 'create', '--name', 'other');
  const { code, progress } = await run(...createKey, '--project', 'other');
  expect(code).toBe(EXIT.failed);
  expect(progress).toContain(`belongs to project ${space.id}: pass --project ${space.id}`);
});

it('projects create generates an opaque id and two environments, and never reuses the id of an archived project', async () => {
  const { run, runOne } = createOperator('yes');
  const created = await runOne('projects', 'create', '--name', 'Outlands');
  expect(created.id).toMatch(/^p[a-z2-9]{12}$/);
  expect(created.environments.map(({ id }) => id)).toEqual([`${created.id}-production`, `${created.id}-development`]);
  expect((await runOne('projects', 'create', '--name', 'Outlands')).id).not.toBe(created.id);
  await run('projects', 'create', '--name', 'A', '--id', 'a');
  await run('projects', 'archive', '--project', 'a');
  const repeated = await run('projects', 'create', '--name', 'A', '--id', 'a');
  expect(repeated).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('already in use') });
});

it('projects add-environment adds an environment with an unused id, in which keys can be created by name', async () => {
  const { run, runOne, printed } = createOperator();
  const add = (project: string, name: string) =>
    runOne('projects', 'add-environment', '--project', project, '--name', name, '--kind', 'development');
  expect((await add('demo', 'staging')).environments.at(-1)).toMatchObject({ id: 'demo-staging', kind: 'development' });
  await run('projects', 'create', '--name', 'E', '--id', 'demo-eu');
  const rest = ['--project', 'demo', '--name', 'eu-production', '--kind', 'production'];
  expect((await run('projects', 'add-environment', ...rest)).progress).toContain('already exists');
  const [created] = (await run(...secretIn('demo', 'staging'))).results.map((line) => JSON.parse(line));
  expect(created).toMatchObject({ environmentId: 'demo-staging', environment: 'development' });
  expect(created.key).toMatch(/^sk_svcapik_test-/);
  // The local stack publishes only the keys of its own two environments.
  expect(printed).toEqual([]);
  const listed = await run('keys', 'list', '--environment', 'staging', '--json');
  expect(listed.results.map((line) => JSON.parse(line))).toMatchObject([{ keyId: created.keyId }]);
});

it('projects limit sets and removes the cap and the limit of an environment independently', async () => {
  const { run, runOne } = createOperator();
  const limit = (...rest: string[]) =>
    runOne('projects', 'limit', '--project', 'demo', '--environment', 'production', ...rest);
  expect((await limit('--cap', '500/1000')).environments[0]).toMatchObject({
    cap: { perSecond: 500, burst: 1000 },
    limit: null,
  });
  expect((await limit('--limit', '5/10')).environments[0]).toMatchObject({
    cap: { perSecond: 500 },
    limit: { burst: 10 },
  });
  expect((await limit('--cap', 'none')).environments[0]).toMatchObject({ cap: null, limit: { perSecond: 5 } });
  const above = ['--cap', '500/1000', '--limit', '501/10'];
  const refused = await run('projects', 'limit', '--project', 'demo', '--environment', 'production', ...above);
  expect(refused).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('must not be above the cap') });
});

it('projects archive requires revoked keys and a confirmation, and later changes to the project fail', async () => {
  const { run } = createOperator('yes');
  await run(...secretIn('demo', 'production'));
  const blocked = await run('projects', 'archive', '--project', 'demo');
  expect(blocked).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('revoke the keys first') });
  await run('keys', 'revoke', '--environment', 'production', '--kind', 'secret');
  expect((await run('projects', 'archive', '--project', 'demo', '--json')).records[0]).toMatchObject({
    state: 'archived',
  });
  expect((await run(...secretIn('demo', 'production'))).progress).toContain('is archived');
  expect((await run('projects', 'rename', '--project', 'demo', '--name', 'D')).progress).toContain('is archived');
});

it('projects archive does not archive a project without confirmation or without a terminal', async () => {
  expect((await createOperator('no').run('projects', 'archive', '--project', 'demo')).code).toBe(EXIT.failed);
  expect((await createOperator().run('projects', 'archive', '--project', 'demo')).code).toBe(EXIT.usage);
});

it('projects rename does not change the project id, and the project is found by its new name', async () => {
  const { runOne } = createOperator();
  await runOne('projects', 'rename', '--project', 'demo', '--name', 'Sky Islands');
  expect(await runOne('projects', 'show', '--project', 'Sky Islands')).toMatchObject({ id: 'demo', revision: 2 });
});

it('keys create fails for an environment that does not exist, and suggests the command that adds the environment', async () => {
  const { run, keys } = createOperator();
  const refused = await run(...secretIn('demo', 'moon'));
  expect(refused).toMatchObject({ code: EXIT.failed, results: [] });
  expect(refused.progress).toContain('npm run projects -- add-environment --project demo --name moon');
  expect((await run(...secretIn('nowhere', 'production'))).progress).toContain(
    'npm run projects -- create --name nowhere',
  );
  expect(keys.log.appended).toEqual([]);
});

const contract = ['--chain', 'demo-chain', '--contract', `0x${'AB'.repeat(20)}`];

it('the collections command links, renames, unlinks and relinks a collection, and reports who changed it last', async () => {
  const { run, runCollections } = createOperator();
  const created = await runCollections('link', ...contract, '--environment', 'production', '--name', 'Swords');
  const expected = { environmentId: 'demo-production', contractAddress: `0x${'ab'.repeat(20)}`, changedBy: 'ada' };
  expect(created).toMatchObject([{ ...expected, name: 'Swords', state: 'linked' }]);
  expect(await runCollections('rename', ...contract, '--name', 'Axes')).toMatchObject([{ name: 'Axes', revision: 2 }]);
  expect(await runCollections('unlink', ...contract)).toMatchObject([{ state: 'unlinked' }]);
  expect(await runCollections('relink', ...contract, '--environment', 'development')).toMatchObject([
    { environmentId: 'demo-development', state: 'linked', name: 'Axes' },
  ]);
  expect(await runCollections('list')).toMatchObject([{ revision: 4 }]);
  expect((await run('collections', 'list')).results[0]).toMatch(/^demo-chain {2}0xab.* Axes {2}linked .* by ada$/);
});

it("the collections command never reveals another project's collection or its owner", async () => {
  const { run, runCollections } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  await runCollections('link', ...contract, '--environment', 'production', '--name', 'Swords', '--project', 'rival');
  const refused = await run('collections', 'link', ...contract, '--environment', 'production', '--name', 'Mine');
  expect(refused).toMatchObject({
    code: EXIT.failed,
    progress: expect.stringContaining('have an administrator of this installation'),
  });
  const unlinked = await run('collections', 'unlink', ...contract);
  expect(unlinked).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('not have the contract') });
  expect(`${refused.progress}${unlinked.progress}`).not.toMatch(/rival|Swords/i);
  expect(await runCollections('list')).toEqual([]);
  expect(await runCollections('list', '--project', 'rival')).toMatchObject([{ state: 'linked' }]);
});

it('collections link refuses a contract on a chain that is not served, and lists the served chains', async () => {
  const { run, collections } = createOperator();
  const moonChain = ['--chain', 'moon-chain', ...contract.slice(2)];
  const refused = await run('collections', 'link', ...moonChain, '--environment', 'production', '--name', 'Mine');
  expect(refused).toMatchObject({
    code: EXIT.failed,
    progress: expect.stringContaining('The chain "moon-chain" is not served. Served chains: demo-chain.'),
  });
  expect(collections.log.appended).toEqual([]);
});

it('collections link refuses an address without code', async () => {
  const { run, collections } = createOperator('', { hasCode: false });
  const refused = await run('collections', 'link', ...contract, '--environment', 'production', '--name', 'Mine');
  const progress = expect.stringContaining(`There is no contract at 0x${'ab'.repeat(20)} on demo-chain.`);
  expect(refused).toMatchObject({ code: EXIT.failed, progress });
  expect(collections.log.appended).toEqual([]);
});

it('collections move moves a collection to another project without changing its name', async () => {
  const { run, runCollections } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  await runCollections('link', ...contract, '--environment', 'production', '--name', 'Swords', '--project', 'rival');
  expect(await runCollections('move', ...contract, '--environment', 'production')).toMatchObject([
    { projectId: 'demo', environmentId: 'demo-production', state: 'linked', name: 'Swords', revision: 2 },
  ]);
  expect(await runCollections('list', '--project', 'rival')).toEqual([]);
  const repeated = await run('collections', 'move', ...contract, '--environment', 'production');
  expect(repeated).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('already linked') });
});

it('collections link fails for an environment that does not exist', async () => {
  const { run, collections } = createOperator();
  const refused = await run('collections', 'link', ...contract, '--environment', 'moon', '--name', 'Mine');
  expect(refused).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('add-environment') });
  expect(collections.log.appended).toEqual([]);
});

it.each([
  ['no subcommand', ['projects'], 'Usage: npm run projects'],
  ['a project without a name', ['projects', 'create'], "required option '--name <name>' not specified"],
  [
    'a change without a project',
    ['projects', 'rename', '--name', 'x'],
    "required option '--project <project>' not specified",
  ],
  [
    'an unknown kind',
    ['projects', 'add-environment', '--project', 'demo', '--name', 'x', '--kind', 'y'],
    'is invalid. Allowed choices are production, development',
  ],
  [
    'a limit without a rate',
    ['projects', 'limit', '--project', 'demo', '--environment', 'production'],
    '--cap or --limit',
  ],
  [
    'a limit without a burst',
    ['projects', 'limit', '--project', 'demo', '--environment', 'e', '--cap', '5'],
    'Expected messages per',
  ],
  ['no subcommand', ['collections'], 'Usage: npm run collections'],
  ['no contract', ['collections', 'unlink', '--chain', 'demo-chain'], "required option '--contract <address>'"],
  [
    'an invalid contract',
    ['collections', 'unlink', '--chain', 'demo-chain', '--contract', '0x1'],
    '--chain and --contract: ',
  ],
  ['no chain', ['collections', 'unlink', ...contract.slice(2)], "required option '--chain <name>'"],
  ['no name', ['collections', 'rename', ...contract], "required option '--name <name>'"],
  ['no environment', ['collections', 'link', ...contract, '--name', 'N'], "required option '--environment <name>'"],
  ['an option of another subcommand', ['collections', 'unlink', ...contract, '--name', 'N'], "unknown option '--name'"],
])('project and collection commands refuse %s with exit code 2', async (_what, args, message) => {
  const { code, progress, results } = await createOperator().run(...args);
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(message);
});

it('projects analysis sets the time zone and the safe properties, and each keeps the other', async () => {
  const { run, runOne } = createOperator();
  expect(await runOne('projects', 'show', '--project', 'demo')).toMatchObject({ timeZone: 'UTC', safeProperties: [] });
  const change = (...args: string[]) => runOne('projects', 'analysis', '--project', 'demo', ...args);
  await change('--time-zone', 'Europe/Berlin');
  expect(await change('--safe-properties', 'mode, level,mode')).toMatchObject({
    timeZone: 'Europe/Berlin',
    safeProperties: ['level', 'mode'],
  });
  expect(await change('--safe-properties', 'none')).toMatchObject({ timeZone: 'Europe/Berlin', safeProperties: [] });
  for (const args of [[], ['--time-zone', 'Europe/Bielefeld'], ['--safe-properties', 'a,,b']])
    expect((await run('projects', 'analysis', '--project', 'demo', ...args)).code).not.toBe(EXIT.ok);
});
