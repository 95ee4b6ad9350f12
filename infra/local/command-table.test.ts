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
const commands = Object.values(scripts).flatMap((line) => /^node \S+bootstrap\.mjs (\S+)$/.exec(line)?.[1] ?? []);
/** Commands that check their arguments themselves, covered by `passed-on-commands.long.test.ts`. */
const passedOn = new Set([...OPERATOR_COMMANDS, 'simulate', 'verify', 'bench', 'fuzz', 'faults', 'attacks']);
const checkedByTable = commands.filter((name) => !passedOn.has(name));

/** A checkout without installed packages, in which a command that does more than check its arguments fails. */
const root = mkdtempSync(join(tmpdir(), 'playline-bare-'));
mkdirSync(join(root, 'infra'));
cpSync(join(CHECKOUT, 'infra', 'local'), join(root, 'infra', 'local'), { recursive: true });
mkdirSync(join(root, '.playline', 'data'), { recursive: true });
afterAll(() => rmSync(root, { recursive: true, force: true }));

function runIn(checkout: string, args: readonly string[]) {
  const bootstrap = join(checkout, 'infra', 'local', 'bootstrap.mjs');
  // The environment has no store addresses, so a command cannot change a deployment.
  const env = { PATH: process.env.PATH, HOME: root };
  const run = spawnSync(process.execPath, [bootstrap, ...args], { cwd: root, env, encoding: 'utf8', input: '' });
  return { code: run.status, out: run.stdout, err: run.stderr };
}

describe('the command table', () => {
  it('describes every command of npm run', () => {
    const overview = refusalOf(['--help'])?.text;
    for (const name of commands) expect(overview).toMatch(new RegExp(`^ {2}npm (run )?${name} `, 'm'));
    for (const unknown of [['rubbish'], []]) expect(refusalOf(unknown)?.code).toBe(2);
  });

  it('has the same headings and order as package.json', () => {
    const overview = refusalOf(['help'])?.text ?? '';
    const shown = overview
      .split('\n')
      .flatMap((line) => /^(?:To (.+)| {2}npm (?:run )?(\S+) .*)$/.exec(line)?.slice(1) ?? []);
    const listed = Object.keys(scripts).map((name) => /^== to (.+) ==$/.exec(name)?.[1] ?? name);
    expect(listed.filter((name) => name !== 'format')).toEqual(shown.filter((name) => name !== undefined));
  });

  it.each(checkedByTable)('explains %s with --help and rejects its invalid arguments with exit code 2', (name) => {
    const help = refusalOf([name, '--help']);
    expect(help).toEqual({ code: 0, text: expect.stringMatching(/^usage: npm /) });
    expect(help?.text).toContain(
      'Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 a dependency does not respond.',
    );
    const acceptsAny = /^(test|test:all|logs)$/.test(name);
    for (const rubbish of acceptsAny ? ['--rubbish'] : ['--rubbish', '--yes=no', 'rub bish'])
      expect(refusalOf([name, rubbish])).toEqual({ code: 2, text: expect.stringMatching(new RegExp(`^${name}: `)) });
  });

  it('checks arguments before anything is installed, started or deleted', () => {
    expect(runIn(root, ['up', '--help'])).toEqual({ code: 0, out: `${refusalOf(['up', '--help'])?.text}\n`, err: '' });
    expect(runIn(root, ['reset', '--yes=no'])).toEqual({ code: 2, out: '', err: expect.stringMatching(/^reset: /) });
    expect(readdirSync(root).sort()).toEqual(['.playline', 'infra']);
    expect(readdirSync(join(root, '.playline'))).toEqual(['data']);
  });

  it('installs no packages for a read-only command, which explains how to install them', () => {
    expect(commands.filter((name) => isReadOnly([name]))).toEqual(expect.arrayContaining(['doctor', 'status', 'logs']));
    const freshCheckout = mkdtempSync(join(tmpdir(), 'playline-fresh-'));
    onTestFinished(() => rmSync(freshCheckout, { recursive: true, force: true }));
    cpSync(join(root, 'infra'), join(freshCheckout, 'infra'), { recursive: true });
    writeFileSync(join(freshCheckout, 'package-lock.json'), '{}');
    const { code, out, err } = runIn(freshCheckout, ['doctor']);
    expect(err).toBe("doctor requires the project's packages, which are missing or outdated. Run `npm start` first\n");
    expect([out, code]).toEqual(['', 1]);
    expect(readdirSync(freshCheckout).sort()).toEqual(['infra', 'package-lock.json']);
  });

  it('changes nothing for a destructive command without a confirmation', () => {
    const { code, err } = runIn(root, ['reset']);
    expect(code).toBe(2);
    expect(err).toContain('nothing was changed');
    expect(readdirSync(join(root, '.playline'))).toEqual(['data']);
  });
});
