import { execFileSync } from 'node:child_process';
import { parseConfig } from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { expect, it } from 'vitest';
import { createAddresses } from '../addresses.ts';
import { createCompletionCommand, createProgram, pathOf, withSubcommands } from '../app.ts';
import { command } from '../command.ts';
import { configSchema } from '../config.ts';
import type { StoreOpeners } from '../store-openers.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createCommandGroups } from './groups.ts';

const HEADER = `# Commands

Generated from the command help. Run \`npm run <command> -- <subcommand> --help\` for a description of each option.`;

async function openProgram() {
  const config = parseConfig(configSchema, {});
  const { stdin, stdout } = process;
  const addresses = createAddresses(config, '/nowhere', createConnectionFaults({ warn: () => {} }));
  const rest = { folder: '/nowhere', stdin, stdout, environment: {}, stop: new AbortController().signal };
  const groups = createCommandGroups({ config, addresses, stores: {} as StoreOpeners, ...rest });
  const commands = (await Promise.all(groups.map((group) => group.load()))).flat();
  return createProgram(commands, { result: () => {}, progress: () => {}, isInteractive: false });
}

it('COMMANDS.md lists every command with its options', async () => {
  const sections = (await openProgram()).commands.map((command) => {
    const lines = withSubcommands(command)
      .filter((each) => each.commands.length === 0)
      .map((each) => {
        const options = each.options
          .toSorted((a, b) => Number(b.mandatory) - Number(a.mandatory))
          .map(({ flags, mandatory }) => `\`${flags}\`${mandatory ? ' (required)' : ''}`);
        const names = each.registeredArguments.map(
          (argument) => ` <${argument.name()}${argument.variadic ? '…' : ''}>`,
        );
        return `| \`${pathOf(each)}${names.join('')}\` | ${each.description().replaceAll('<', '\\<')} | ${options.join(', ').replaceAll('|', '\\|')} |`;
      });
    return [`## ${command.name()}`, '', '| command | what it does | options |', '|---|---|---|', ...lines].join('\n');
  });
  await expect(`${[HEADER, ...sections].join('\n\n')}\n`).toMatchFileSnapshot('../../COMMANDS.md');
});

const CHECKOUT = new URL('../../../..', import.meta.url).pathname;
const keys = () =>
  command('keys', 'keys').addCommand(
    command('create', 'create a key').option('--kind <kind>', 'key kind').option('--json', ''),
  );

it.each([
  [['npm', 'run', 'ke'], ['keys']],
  [
    ['npm', 'run', 'keys', '--', ''],
    ['create', '--help'],
  ],
  [['npm', 'run', 'keys', '--', 'create', '--k'], ['--kind']],
  [['npm', 'run', 'keys', '--', 'create', '--kind', 'secret', '--j'], ['--json']],
  [['npm', 'install', ''], []],
])('the completion script completes %j in bash', async (args, expected) => {
  const { results } = await runInProcess([keys, createCompletionCommand(CHECKOUT)], ['completion']);
  const typed = `COMP_WORDS=(${args.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${args.length - 1}`;
  const script = `${results.join('\n')}\n${typed}; COMPREPLY=(); _playline; echo "\${COMPREPLY[*]}"`;
  const shown = execFileSync('bash', ['-c', script], { encoding: 'utf8' });
  expect(shown.split(/\s+/).filter(Boolean)).toEqual(expected);
});
