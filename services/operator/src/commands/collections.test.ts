import { ACCESS_KEYS, COLLECTIONS, type CollectionRecord, PROJECTS } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { createMemorySources } from '../test/memory-sources.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createCollectionsCommand } from './collections.ts';
import { createProjectsCommand } from './projects.ts';

const contract = ['--chain', 'demo-chain', '--contract', `0x${'AB'.repeat(20)}`];

function createOperator() {
  const projects = createMemorySources(PROJECTS);
  const context = { projects, keys: createMemorySources(ACCESS_KEYS) };
  const collections = createMemorySources(COLLECTIONS);
  const commands = [
    createCollectionsCommand({ ...context, collections, servedChains: () => ['demo-chain'] }),
    createProjectsCommand(context),
  ];
  const run = async (...args: string[]) => {
    return runInProcess(commands, args);
  };
  const records = async (...args: string[]): Promise<CollectionRecord[]> =>
    (await run('collections', ...args, '--json')).results.map((line) => JSON.parse(line));
  return { run, records, collections };
}

it('the collections command links, renames, unlinks and links again, and reports who did it', async () => {
  const { run, records } = createOperator();
  const linked = await records('link', ...contract, '--environment', 'production', '--name', 'Swords');
  const own = { environmentId: 'demo-production', contractAddress: `0x${'ab'.repeat(20)}`, changedBy: 'ada' };
  expect(linked).toMatchObject([{ ...own, name: 'Swords', state: 'linked' }]);
  expect(await records('rename', ...contract, '--name', 'Axes')).toMatchObject([{ name: 'Axes', revision: 2 }]);
  expect(await records('unlink', ...contract)).toMatchObject([{ state: 'unlinked' }]);
  expect(await records('relink', ...contract, '--environment', 'development')).toMatchObject([
    { environmentId: 'demo-development', state: 'linked', name: 'Axes' },
  ]);
  expect(await records('list')).toMatchObject([{ revision: 4 }]);
  expect((await run('collections', 'list')).results[0]).toMatch(/^demo-chain {2}0xab.* Axes {2}linked .* by ada$/);
});

it('the collections command never shows a project the collection of another one, nor its owner', async () => {
  const { run, records } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  await records('link', ...contract, '--environment', 'production', '--name', 'Swords', '--project', 'rival');
  const refused = await run('collections', 'link', ...contract, '--environment', 'production', '--name', 'Mine');
  expect(refused).toMatchObject({
    code: EXIT.failed,
    progress: expect.stringContaining('have an administrator of this installation'),
  });
  const unlinked = await run('collections', 'unlink', ...contract);
  expect(unlinked).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('no such collection') });
  expect(`${refused.progress}${unlinked.progress}`).not.toMatch(/rival|Swords/i);
  expect(await records('list')).toEqual([]);
  expect(await records('list', '--project', 'rival')).toMatchObject([{ state: 'linked' }]);
});

it('the collections command links only contracts of chains that are served, and lists those', async () => {
  const { run, collections } = createOperator();
  const elsewhere = ['--chain', 'moon-chain', ...contract.slice(2)];
  const refused = await run('collections', 'link', ...elsewhere, '--environment', 'production', '--name', 'Mine');
  expect(refused).toMatchObject({
    code: EXIT.failed,
    progress: expect.stringContaining('The chain "moon-chain" is not served. Served chains: demo-chain.'),
  });
  expect(collections.log.appended).toEqual([]);
});

it('the collections command moves a contract from the project that has it to another one, and names it as before', async () => {
  const { run, records } = createOperator();
  await run('projects', 'create', '--name', 'Rival', '--id', 'rival');
  await records('link', ...contract, '--environment', 'production', '--name', 'Swords', '--project', 'rival');
  expect(await records('move', ...contract, '--environment', 'production')).toMatchObject([
    { projectId: 'demo', environmentId: 'demo-production', state: 'linked', name: 'Swords', revision: 2 },
  ]);
  expect(await records('list', '--project', 'rival')).toEqual([]);
  const again = await run('collections', 'move', ...contract, '--environment', 'production');
  expect(again).toMatchObject({
    code: EXIT.failed,
    progress: expect.stringContaining('already linked the contract'),
  });
});

it('the collections command links only to an environment that exists', async () => {
  const { run, collections } = createOperator();
  const refused = await run('collections', 'link', ...contract, '--environment', 'moon', '--name', 'Mine');
  expect(refused).toMatchObject({ code: EXIT.failed, progress: expect.stringContaining('add-environment') });
  expect(collections.log.appended).toEqual([]);
});

it.each([
  ['no subcommand', [], 'Usage: npm run collections'],
  ['no contract', ['unlink', '--chain', 'demo-chain'], "required option '--contract <address>'"],
  ['an invalid contract', ['unlink', '--chain', 'demo-chain', '--contract', '0x1'], '--chain and --contract: '],
  ['no chain', ['unlink', ...contract.slice(2)], "required option '--chain <name>'"],
  ['no name', ['rename', ...contract], "required option '--name <name>'"],
  ['no environment', ['link', ...contract, '--name', 'N'], "required option '--environment <name>'"],
  ['an option of another subcommand', ['unlink', ...contract, '--name', 'N'], "unknown option '--name'"],
])('the collections command refuses %s with a sentence and exit code 2', async (_what, rest, sentence) => {
  const { code, progress, results } = await createOperator().run('collections', ...rest);
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(sentence);
});
