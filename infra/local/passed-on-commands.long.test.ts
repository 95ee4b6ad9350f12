import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { OPERATOR_COMMANDS } from './commands/run.ts';
import { CHECKOUT } from './paths.ts';

function run(main: string, ...args: string[]) {
  // The environment has no store addresses, so a command cannot change a deployment.
  const options = {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, HOME: tmpdir() },
    encoding: 'utf8',
    input: '',
  } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(CHECKOUT, main), ...args], options);
  return { code: status, out: stdout, err: stderr };
}
const npmRun = (...args: string[]) => run('infra/local/bootstrap.mjs', ...args);

it('every operator command in npm run exists', () => {
  const { out } = run('services/operator/src/main.ts', '--help');
  for (const name of OPERATOR_COMMANDS) expect(out).toMatch(new RegExp(`^ +${name}\\b`, 'm'));
});

it.each(['keys', 'verify', 'simulate', 'bench', 'fuzz', 'faults', 'attacks'])(
  'npm run %s prints its usage with --help and returns 2 for invalid arguments',
  (name) => {
    const help = npmRun(name, '--help');
    expect(help.code).toBe(0);
    expect(help.out).toMatch(/^Usage: npm run /);
    const { code, err } = npmRun(name, '--rubbish');
    expect(code).toBe(2);
    expect(err).toContain(`(see npm run ${name} -- --help)`);
  },
);
