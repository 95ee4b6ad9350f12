import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { command } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createCompletionCommand } from './completion.ts';

const CHECKOUT = new URL('../../../..', import.meta.url).pathname;
const keys = () =>
  command('keys', 'keys').addCommand(
    command('create', 'create a key').option('--kind <kind>', 'its kind').option('--json', ''),
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
