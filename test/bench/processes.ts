import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@playline/testkit';
import { type ServiceEntry, type ServiceName, serviceOf } from '../../infra/local/services.ts';

/** Ticks a second in /proc: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const MIB = 1024 * 1024;

/** User and system seconds a process has used so far, all its threads together. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in parentheses and may hold spaces; user and system are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU seconds from now until the call; not a number when the process is not ours to see. */
export function watchCpu(pid: number | null): () => number {
  if (pid === null) return () => Number.NaN;
  const before = cpuSecondsOf(pid);
  return () => cpuSecondsOf(pid) - before;
}

/** The most memory a process has held since it started, in MiB. */
export function memoryPeakMibOf(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round((Number(kib) * 1024) / MIB);
}

/** Present memory of a process in MiB, with its proportional part of shared memory. */
export function memoryMibOf(pid: number): number {
  const [, kib] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
  return (Number(kib) * 1024) / MIB;
}

/** The process of this machine that listens on a TCP port; null when there is none that we may see. */
export function pidListeningOn(port: number): number | null {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const LISTEN = '0A';
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n'));
  const rows = lines.map((line) => line.trim().split(/\s+/));
  const inode = rows.find((row) => row[1]?.endsWith(`:${hex}`) && row[3] === LISTEN)?.[9];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return Number(pids.find((pid) => inode !== undefined && hasSocket(pid, inode)) ?? 0) || null;
}

function hasSocket(pid: string, inode: string): boolean {
  return descriptorsOf(pid).some((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`) === `socket:[${inode}]`;
    } catch {
      // Closed meanwhile.
      return false;
    }
  });
}

function descriptorsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    // It ended meanwhile, or it is another user's.
    return [];
  }
}

/** A process under measurement. */
export interface Measured {
  readonly pid: number;
  /** The last lines it wrote, for the message of a failure. */
  output(): string;
  close(): Promise<void>;
}

/** How long a process may take to drain before it is killed: longer than `runService` allows. */
const CLOSE_MAX_MS = 30_000;
/** Enough for the stack of a failure. */
const OUTPUT_CHARACTERS_MAX = 4_000;

export interface ProcessOptions {
  /** All that it sees besides PATH. */
  environment: Readonly<Record<string, string>>;
  nodeOptions?: readonly string[];
}

/** Starts a TypeScript file of the repository under this Node. */
export function openProcess(file: string, { environment, nodeOptions = [] }: ProcessOptions): Measured {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  // As a stack starts its services: with the folder in which Node keeps what it compiled.
  const env = { ...bareEnvironment(), ...environment };
  const child = spawn(process.execPath, [...nodeOptions, file], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-OUTPUT_CHARACTERS_MAX);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  if (child.pid === undefined) throw new Error(`${file} could not be started`);
  // Whatever ends this process, the one under measurement does not outlive it.
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.once('exit', () => process.removeListener('exit', atExit));
  return { pid: child.pid, output: () => output, close: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const patience = setTimeout(() => child.kill('SIGKILL'), CLOSE_MAX_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(patience);
}

/** How often a condition is looked at: coarse enough to cost the machine nothing. */
export const LOOK_EVERY_MS = 200;

/** Waits for a condition. @throws Error with `what` and the process's last output when it takes too long */
export async function waitFor(
  what: string,
  condition: () => Promise<boolean>,
  { measured, maxMs }: { measured?: Measured; maxMs: number },
): Promise<void> {
  const end = Date.now() + maxMs;
  while (!(await condition().catch(() => false))) {
    const gone = measured !== undefined && !existsSync(`/proc/${measured.pid}`);
    if (gone || Date.now() > end)
      throw new Error(
        `${gone ? 'the process ended before' : `not within ${maxMs} ms:`} ${what}\n${measured?.output() ?? ''}`,
      );
    await delay(LOOK_EVERY_MS);
  }
}

/** Starts a service as it is deployed. */
export function openService(name: ServiceName, settings: Readonly<Record<string, string>>): Measured {
  const { environment, nodeOptions }: ServiceEntry = serviceOf(name);
  return openProcess(`services/${name}/src/main.ts`, {
    environment: { ...environment, ...settings },
    ...(nodeOptions && { nodeOptions }),
  });
}

/** Waits until a service says on its admin listener that it is ready. */
export function waitUntilReady(measured: Measured, adminPort: number): Promise<void> {
  const ready = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  return waitFor(`process ${measured.pid} is ready`, ready, { measured, maxMs: 30_000 });
}
