import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { isReadOnly, refusalOf } from './command-table.mjs';
import { OPERATOR_COMMANDS } from './commands/run.ts';
import { CHECKOUT } from './paths.ts';

const { scripts } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
/** The commands of `npm run` by their name in the bootstrap, without tools for developers. */
const commands = Object.values(scripts).flatMap((line) => /^node \S+bootstrap\.mjs (\S+)$/.exec(line)?.[1] ?? []);
/** Commands that check their arguments themselves: `passed-on-commands.long.test.ts` has them. */
const passedOn = new Set([...OPERATOR_COMMANDS, 'simulate', 'verify', 'bench', 'fuzz', 'faults', 'attacks']);
const checkedFirst = commands.filter((name) => !passedOn.has(name));

/** A checkout without installed packages. A command that does more than check its arguments leaves a trace or fails. */
const bare = mkdtempSync(join(tmpdir(), 'playline-bare-'));
mkdirSync(join(bare, 'infra'));
cpSync(join(CHECKOUT, 'infra', 'local'), join(bare, 'infra', 'local'), { recursive: true });
mkdirSync(join(bare, '.playline', 'data'), { recursive: true });
afterAll(() => rmSync(bare, { recursive: true, force: true }));

function runIn(checkout: string, args: readonly string[]) {
  const bootstrap = join(checkout, 'infra', 'local', 'bootstrap.mjs');
  // No addresses of a deployment, so that a command cannot work on anything.
  const env = { PATH: process.env.PATH, HOME: bare };
  const run = spawnSync(process.execPath, [bootstrap, ...args], { cwd: bare, env, encoding: 'utf8', input: '' });
  return { code: run.status, out: run.stdout, err: run.stderr };
}

describe('the arguments of a command', () => {
  it('are known for everything that npm run offers', () => {
    const overview = refusalOf(['--help'])?.text;
    for (const name of commands) expect(overview).toMatch(new RegExp(`^ {2}npm (run )?${name} `, 'm'));
    for (const unknown of [['rubbish'], []]) expect(refusalOf(unknown)?.code).toBe(2);
  });

  it('are in package.json under the same headings and in the same order as in the overview', () => {
    const overview = refusalOf(['help'])?.text ?? '';
    const shown = overview
      .split('\n')
      .flatMap((line) => /^(?:To (.+)| {2}npm (?:run )?(\S+) .*)$/.exec(line)?.slice(1) ?? []);
    const listed = Object.keys(scripts).map((name) => /^== to (.+) ==$/.exec(name)?.[1] ?? name);
    expect(listed.filter((name) => name !== 'format')).toEqual(shown.filter((name) => name !== undefined));
  });

  it.each(checkedFirst)('of %s are explained by --help, and wrong ones end with 2', (name) => {
    const help = refusalOf([name, '--help']);
    expect(help).toEqual({ code: 0, text: expect.stringMatching(/^usage: npm /) });
    expect(help?.text).toContain('Exit code: 0 done, 1 failed, 2 wrong arguments, 3 a dependency does not answer.');
    // Paths of tests and names of logs may be any text.
    const takesAny = /^(test|test:all|logs)$/.test(name);
    for (const rubbish of takesAny ? ['--rubbish'] : ['--rubbish', '--yes=no', 'rub bish'])
      expect(refusalOf([name, rubbish])).toEqual({ code: 2, text: expect.stringMatching(new RegExp(`^${name}: `)) });
  });

  it('are checked before anything is installed, started or removed', () => {
    expect(runIn(bare, ['up', '--help'])).toEqual({ code: 0, out: `${refusalOf(['up', '--help'])?.text}\n`, err: '' });
    expect(runIn(bare, ['reset', '--yes=no'])).toEqual({ code: 2, out: '', err: expect.stringMatching(/^reset: /) });
    expect(readdirSync(bare).sort()).toEqual(['.playline', 'infra']);
    expect(readdirSync(join(bare, '.playline'))).toEqual(['data']);
  });

  it('of commands that only read: without packages they explain how to install them, and install nothing', () => {
    expect(commands.filter((name) => isReadOnly([name]))).toEqual(expect.arrayContaining(['doctor', 'status', 'logs']));
    const fresh = mkdtempSync(join(tmpdir(), 'playline-fresh-'));
    onTestFinished(() => rmSync(fresh, { recursive: true, force: true }));
    cpSync(join(bare, 'infra'), join(fresh, 'infra'), { recursive: true });
    writeFileSync(join(fresh, 'package-lock.json'), '{}');
    const { code, out, err } = runIn(fresh, ['doctor']);
    expect(err).toBe(
      "doctor needs the project's packages, which are missing or outdated, and installs nothing itself: run `npm start`\n",
    );
    expect([out, code]).toEqual(['', 1]);
    expect(readdirSync(fresh).sort()).toEqual(['infra', 'package-lock.json']);
  });

  it('that destroy everything need a confirmation, and without one nothing is touched', () => {
    const { code, err } = runIn(bare, ['reset']);
    expect(code).toBe(2);
    expect(err).toContain('nothing was changed');
    expect(readdirSync(join(bare, '.playline'))).toEqual(['data']);
  });
});
