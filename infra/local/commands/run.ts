import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { EXIT } from '../command-table.mjs';
import type { Places } from '../places.ts';
import { readStackFile } from '../stack-file.ts';

/** Environment with this Node first in PATH: the machine's own may be too old for what is run. */
export function environmentOfNode(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` };
}

/** Runs a program in the checkout with this terminal, passes SIGTERM on, and gives its exit code. */
export function runHere(
  places: Places,
  program: string,
  { args, cwd = places.checkout, env }: { args: readonly string[]; cwd?: string; env?: Record<string, string> },
): Promise<number> {
  return new Promise((done) => {
    const child = spawn(program, args, { cwd, env: { ...environmentOfNode(), ...env }, stdio: 'inherit' });
    // Ctrl-C reaches the program by itself: it shares our terminal.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => child.kill('SIGTERM'));
    child.once('error', (error) => {
      console.error(`${program} could not be run: ${error.message}`);
      done(127);
    });
    child.once('exit', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** `npm run simulate -- …`, `npm run keys -- …` and so on: commands of the operator under their own names. */
export function operate(name: string): (places: Places, args: readonly string[]) => Promise<number> {
  return (places, args) =>
    runHere(places, process.execPath, {
      args: [join(places.checkout, 'services/operator/src/main.ts'), name, ...args],
      // Where it looks for the stack's records.
      cwd: dirname(places.state),
      env: settingsOf(places),
    });
}

/** Processes whose answers or commits `verify` depends on. */
const NEEDED_BY_VERIFY = ['kafka', 'registry', 'clickhouse', 'event-writer'];

/** Settings with which the operator's commands work on another deployment than the stack of this checkout. */
const OTHER_DEPLOYMENT = ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'REDIS_URL', 'CLICKHOUSE_URL'];

/**
 * `npm run verify`: what is not written yet it cannot judge, so it does not pass while a process of this stack that it
 * stands on does not serve.
 */
export async function verify(places: Places, args: readonly string[]): Promise<number> {
  const code = await operate('verify')(places, args);
  const isElsewhere = OTHER_DEPLOYMENT.some((name) => process.env[name] !== undefined);
  if (code !== EXIT.ok || isElsewhere || args.includes('--help')) return code;
  // Clients of every store, which the commands that only hand words on need not load.
  const [{ findOrphans }, { judge, readStatus }] = await Promise.all([
    import('../children.ts'),
    import('../status.ts'),
  ]);
  const statuses = await readStatus(places);
  const needed = statuses?.filter(({ name }) => NEEDED_BY_VERIFY.includes(name)) ?? null;
  const { isWell, sentence, hint } = judge(
    needed,
    findOrphans(places).map(({ name }) => name),
  );
  if (isWell) return code;
  console.error(
    `verify: this holds up to what the event writer has committed, and that may be old: ${sentence}${hint}`,
  );
  return EXIT.unreachable;
}

/** What the stack that runs here was started with, and this terminal need not know; whatever is set here comes first. */
function settingsOf(places: Places): Record<string, string> {
  const settings = Object.entries(readStackFile(places)?.settings ?? {});
  return Object.fromEntries(settings.filter(([name]) => process.env[name] === undefined));
}

/** `npm run bench`, `npm run fuzz`, `npm run faults`: what is too long for the tests, with a command of its own. */
export function measure(name: 'bench' | 'fuzz' | 'faults') {
  return (places: Places, args: readonly string[]): Promise<number> =>
    runHere(places, process.execPath, { args: [join(places.checkout, `test/${name}/main.ts`), ...args] });
}

/** `npm run contracts`: compiles the contracts of the demo chain. */
export function contracts(places: Places, args: readonly string[]): Promise<number> {
  return runHere(places, process.execPath, { args: [join(places.checkout, 'infra/chain/compile.ts'), ...args] });
}

/** The path of an installed tool. */
export function toolOf(places: Places, name: string): string {
  return join(places.checkout, 'node_modules', '.bin', name);
}

/** `exec <tool> …`: a tool of `node_modules/.bin`, run by this Node. */
export function exec(places: Places, [name = '', ...args]: readonly string[]): Promise<number> {
  return runHere(places, toolOf(places, name), { args });
}
