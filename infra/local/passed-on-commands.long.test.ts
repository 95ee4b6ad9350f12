import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { OPERATOR_COMMANDS } from './commands/run.ts';
import { CHECKOUT } from './paths.ts';

/** Without addresses of a deployment. */
const env = { PATH: process.env.PATH, HOME: tmpdir() };

function run(...args: string[]) {
  const bootstrap = join(CHECKOUT, 'infra', 'local', 'bootstrap.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [bootstrap, ...args], {
    cwd: tmpdir(),
    env,
    encoding: 'utf8',
    input: '',
  });
  return { code: status, out: stdout, err: stderr };
}

it.each([...OPERATOR_COMMANDS, 'simulate', 'verify', 'bench', 'fuzz', 'faults', 'attacks'])(
  'npm run %s explains itself with --help, returns 2 for wrong arguments, and does nothing',
  (name) => {
    const help = run(name, '--help');
    expect(help.code).toBe(0);
    expect(help.out).toMatch(/^Usage: npm run /);
    const { code, err } = run(name, '--rubbish');
    expect(code).toBe(2);
    expect(err).toContain(`(see npm run ${name} -- --help)`);
    expect(run(name, 'rub bish').code).toBe(2);
  },
);
