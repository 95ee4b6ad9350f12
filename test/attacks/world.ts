import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CHECKOUT, type Stack, startStack } from '@playline/infra/local';
import { bareEnvironment, testStackFolder } from '@playline/testkit';
import { query } from '../journeys/stack.ts';
import type { BystanderTargets, Lap } from './bystander.ts';

/** Keys of one environment. */
export interface Tenant {
  project: string;
  publishable: string;
  secret: string;
}

/** A whole stack with two projects: one attacks, one does what everybody does. */
export interface AttackWorld {
  stack: Stack;
  /** The demo project, which has collections and mints. */
  attacker: Tenant;
  bystander: Tenant;
  /** What the bystander saw since the last call. */
  lap(): Promise<Lap>;
  /** Runs a command of the operator. @returns what it printed @throws Error when it fails */
  operate(...args: string[]): Promise<string>;
  /** Rows of a query. */
  query<T>(sql: string): Promise<T[]>;
  /** Resident memory of a service's process, and the most since its start, in MB. */
  memoryOf(service: string): { nowMb: number; mostMb: number };
  close(): Promise<void>;
}

const run = promisify(execFile);
const BYSTANDER = fileURLToPath(new URL('./bystander.ts', import.meta.url));

export async function openAttackWorld(): Promise<AttackWorld> {
  const root = testStackFolder('attacks');
  // Commands expect the stack's records in a folder of this name.
  const stack = await startStack({ directory: join(root, '.playline'), chain: true });
  let child: ChildProcess | null = null;
  const close = async () => {
    child?.kill();
    await stack.stop();
    rmSync(root, { recursive: true, force: true });
  };
  const operate = async (...args: string[]) => {
    const program = join(CHECKOUT, 'services/operator/src/main.ts');
    return (await run(process.execPath, [program, ...args], { env: bareEnvironment(), cwd: root })).stdout;
  };
  try {
    const { keys, gateway, chainApi, portal } = stack.file;
    const bystander = await createBystander(operate);
    const plan = ['--kind', 'rate-limit', '--partner', 'Bystander', '--calls', '100000', '--json'];
    const { key: rateLimitKey } = JSON.parse(await operate('keys', 'create', ...plan)) as { key: string };
    const publishableKey = bystander.publishable;
    const targets = { gateway, chainApi, portal, publishableKey, rateLimitKey } as BystanderTargets;
    child = fork(BYSTANDER, [JSON.stringify(targets)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const running = child;
    return {
      stack,
      attacker: { project: 'demo', ...keys!.development },
      bystander,
      lap: async () => {
        running.send('lap');
        return (await once(running, 'message'))[0] as Lap;
      },
      operate,
      query: (sql) => query(stack.file.clickhouse, sql),
      memoryOf: (service) => {
        const status = readFileSync(`/proc/${stack.file.processes[service]}/status`, 'utf8');
        const of = (name: string) =>
          Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024);
        return { nowMb: of('VmRSS'), mostMb: of('VmHWM') };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes another project, with keys of its production environment. */
async function createBystander(operate: AttackWorld['operate']): Promise<Tenant> {
  await operate('projects', 'create', '--name', 'Bystander', '--id', 'bystander');
  const keyOf = async (kind: string) => {
    const args = ['--project', 'bystander', '--environment', 'production', '--kind', kind, '--json'];
    return (JSON.parse(await operate('keys', 'create', ...args)) as { key: string }).key;
  };
  return { project: 'bystander', publishable: await keyOf('publishable'), secret: await keyOf('secret') };
}
