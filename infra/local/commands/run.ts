import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { EXIT } from '../command-table.mjs';
import type { StackPaths } from '../paths.ts';
import { readStackFile } from '../stack-file.ts';

/** Environment with this Node first in PATH, because the machine's own may be too old. */
export function environmentOfNode(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` };
}

/** Runs a program in the checkout with this terminal, and passes SIGTERM on. @returns its exit code */
export function runHere(
  places: StackPaths,
  program: string,
  { args, cwd = places.checkout, env }: { args: readonly string[]; cwd?: string; env?: Record<string, string> },
): Promise<number> {
  return new Promise((done) => {
    const child = spawn(program, args, { cwd, env: { ...environmentOfNode(), ...env }, stdio: 'inherit' });
    // Ctrl-C reaches the program directly, because it shares our terminal.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => child.kill('SIGTERM'));
    child.once('error', (error) => {
      console.error(`${program} could not be run: ${error.message}`);
      done(127);
    });
    child.once('exit', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** Commands of the operator that `npm run` has under their own names. */
export const OPERATED: readonly string[] = [
  ...['keys', 'projects', 'accounts', 'mints', 'collections', 'identity', 'consent', 'rebuild', 'chain'],
  ...['dead-letters', 'offsets', 'derive', 'analysts', 'erasures', 'columns', 'import', 'replicate', 'completion'],
];

/** Runs a command of the operator under its own name: `npm run keys -- …`, `npm run projects -- …` and so on. */
export function operate(name: string): (places: StackPaths, args: readonly string[]) => Promise<number> {
  return (places, args) => runForStack(places, ['services/operator/src/main.ts', name, ...args]);
}

/** `npm run simulate`: traffic of a game or a chain for the stack of this checkout, or for another deployment. */
export function simulate(places: StackPaths, args: readonly string[]): Promise<number> {
  return runForStack(places, ['test/simulate/main.ts', ...args]);
}

/** Runs a program that looks for the stack's records in its folder. @param program its path in the checkout */
function runForStack(places: StackPaths, [program = '', ...args]: readonly string[]): Promise<number> {
  return runHere(places, process.execPath, {
    args: [join(places.checkout, program), ...args],
    cwd: dirname(places.state),
    env: settingsOf(places),
  });
}

/** Processes whose answers or commits `verify` depends on. */
const NEEDED_BY_VERIFY = ['kafka', 'registry', 'clickhouse', 'event-writer'];

/** Settings that make the operator's commands work on another deployment than the stack of this checkout. */
const OTHER_DEPLOYMENT = ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'REDIS_URL', 'CLICKHOUSE_URL'];

/**
 * `npm run verify`. It cannot judge what is not written yet, so it fails while a process of this stack that it depends
 * on does not serve.
 */
export async function verify(places: StackPaths, args: readonly string[]): Promise<number> {
  const code = await operate('verify')(places, args);
  const isElsewhere = OTHER_DEPLOYMENT.some((name) => process.env[name] !== undefined);
  if (code !== EXIT.ok || isElsewhere || args.includes('--help')) return code;
  // These need clients of every store. Commands that only pass their arguments on need not load them.
  const [{ findOrphans }, { toVerdict, readStatus }] = await Promise.all([
    import('../children.ts'),
    import('../status.ts'),
  ]);
  const statuses = await readStatus(places);
  const needed = statuses?.filter(({ name }) => NEEDED_BY_VERIFY.includes(name)) ?? null;
  const { isWell, sentence, hint } = toVerdict(
    needed,
    findOrphans(places).map(({ name }) => name),
  );
  if (isWell) return code;
  console.error(
    `verify: this holds up to what the event writer has committed, and that may be old: ${sentence}${hint}`,
  );
  return EXIT.unreachable;
}

/** The settings with which the running stack was started. Settings of this terminal take precedence. */
function settingsOf(places: StackPaths): Record<string, string> {
  const settings = Object.entries(readStackFile(places)?.settings ?? {});
  return Object.fromEntries(settings.filter(([name]) => process.env[name] === undefined));
}

/** `npm run bench`, `npm run fuzz`, `npm run faults`, `npm run attacks`: measurements and trials that are too long for the tests. */
export function measure(name: 'bench' | 'fuzz' | 'faults' | 'attacks') {
  return (places: StackPaths, args: readonly string[]): Promise<number> =>
    runHere(places, process.execPath, { args: [join(places.checkout, `test/${name}/main.ts`), ...args] });
}

/** `npm run contracts`: compiles the contracts of the demo chain. */
export function contracts(places: StackPaths, args: readonly string[]): Promise<number> {
  return runHere(places, process.execPath, { args: [join(places.checkout, 'infra/chain/compile.ts'), ...args] });
}

/** The path of an installed tool. */
export function toolOf(places: StackPaths, name: string): string {
  return join(places.checkout, 'node_modules', '.bin', name);
}

/** `exec <tool> …`: a tool of `node_modules/.bin`, run by this Node. */
export function exec(places: StackPaths, [name = '', ...args]: readonly string[]): Promise<number> {
  return runHere(places, toolOf(places, name), { args });
}
