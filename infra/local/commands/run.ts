import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { EXIT } from '../command-table.mjs';
import { parseNodeName } from '../node-names.ts';
import type { StackPaths } from '../paths.ts';
import { readStackFile } from '../stack-file.ts';

/** Returns the environment with this Node first in PATH, because the machine's Node may be too old. */
export const environmentOfNode = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
});

/** Runs a program in the checkout and this terminal, and forwards SIGTERM. @returns the exit code of the program */
export function runHere(
  paths: StackPaths,
  program: string,
  { args, cwd = paths.checkout, env }: { args: readonly string[]; cwd?: string; env?: Record<string, string> },
): Promise<number> {
  return new Promise((done) => {
    const child = spawn(program, args, { cwd, env: { ...environmentOfNode(), ...env }, stdio: 'inherit' });
    // Ctrl-C reaches the program directly through the terminal.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => child.kill('SIGTERM'));
    child.once('error', (error) => {
      console.error(`${program} could not be run: ${error.message}`);
      done(127);
    });
    child.once('exit', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** Operator commands that are available through `npm run`. */
export const OPERATOR_COMMANDS: readonly string[] = [
  ...['keys', 'projects', 'accounts', 'mints', 'collections', 'identity', 'consent', 'rebuild', 'chain'],
  ...[
    'trace',
    'dead-letters',
    'offsets',
    'derive',
    'analysts',
    'erasures',
    'columns',
    'import',
    'replicate',
    'completion',
    'backup',
    'restore',
  ],
];

export const operate =
  (name: string): ((paths: StackPaths, args: readonly string[]) => Promise<number>) =>
  (paths, args) =>
    runForStack(paths, ['services/operator/src/main.ts', name, ...args]);

export const simulate = (paths: StackPaths, args: readonly string[]): Promise<number> =>
  runForStack(paths, ['test/simulate/main.ts', ...args]);

/** Runs a program, which finds the stack through its working directory. @param program path relative to the checkout */
function runForStack(paths: StackPaths, [program = '', ...args]: readonly string[]): Promise<number> {
  return runHere(paths, process.execPath, {
    args: [join(paths.checkout, program), ...args],
    cwd: dirname(paths.state),
    env: settingsOf(paths),
  });
}

const VERIFY_DEPENDENCIES = ['kafka', 'registry', 'clickhouse', 'event-writer'];

/** Settings with which operator commands connect to another deployment. */
const DEPLOYMENT_SETTINGS = ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'REDIS_URL', 'CLICKHOUSE_URL'];

/** Runs `verify`. Fails if a process it depends on is not ready, because unwritten rows cannot be verified. */
export async function verify(paths: StackPaths, args: readonly string[]): Promise<number> {
  const code = await operate('verify')(paths, args);
  const isOtherDeployment = DEPLOYMENT_SETTINGS.some((name) => process.env[name] !== undefined);
  if (code !== EXIT.ok || isOtherDeployment || args.includes('--help')) return code;
  // Loaded dynamically, because these modules import the clients of all stores.
  const [{ findOrphans }, { toVerdict, readStatus }] = await Promise.all([
    import('../children.ts'),
    import('../status.ts'),
  ]);
  const statuses = await readStatus(paths);
  const required = statuses?.filter(({ name }) => VERIFY_DEPENDENCIES.includes(parseNodeName(name).kind)) ?? null;
  const orphans = findOrphans(paths).map(({ name }) => name);
  const { isWell, sentence, hint } = toVerdict(required, orphans);
  if (isWell) return code;
  console.error(
    `verify: the result only covers rows up to the event writer's last commit, which may be old: ${sentence}${hint}`,
  );
  return EXIT.unreachable;
}

/** Returns the settings of the running stack. Environment variables of this terminal take precedence. */
function settingsOf(paths: StackPaths): Record<string, string> {
  const settings = Object.entries(readStackFile(paths)?.settings ?? {});
  return Object.fromEntries(settings.filter(([name]) => process.env[name] === undefined));
}

export function runTestTool(name: 'bench' | 'fuzz' | 'faults' | 'attacks') {
  return (paths: StackPaths, args: readonly string[]): Promise<number> =>
    runHere(paths, process.execPath, { args: [join(paths.checkout, `test/${name}/main.ts`), ...args] });
}

export const contracts = (paths: StackPaths, args: readonly string[]): Promise<number> =>
  runHere(paths, process.execPath, { args: [join(paths.checkout, 'infra/chain/compile.ts'), ...args] });

export const shards = (paths: StackPaths, args: readonly string[]): Promise<number> =>
  runHere(paths, process.execPath, { args: [join(paths.checkout, 'infra/clickhouse/main.ts'), ...args] });

export const toolOf = (paths: StackPaths, name: string): string => join(paths.checkout, 'node_modules', '.bin', name);

/** Implements `exec <tool> …`: runs a tool from `node_modules/.bin` with this Node. */
export const exec = (paths: StackPaths, [name = '', ...args]: readonly string[]): Promise<number> =>
  runHere(paths, toolOf(paths, name), { args });
