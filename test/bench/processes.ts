import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@playline/testkit';
import { type ServiceEntry, type ServiceName, serviceOf } from '../../infra/local/services.ts';

/** Ticks per second in /proc (USER_HZ), which is 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;
const MIB = 1024 * 1024;

/** User and system CPU seconds of all threads of a process so far. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in parentheses and may contain spaces. User and system time are fields 14
  // and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU seconds from now until the returned function is called; NaN when the process cannot be read. */
export function watchCpu(pid: number | null): () => number {
  if (pid === null) return () => Number.NaN;
  const before = cpuSecondsOf(pid);
  return () => cpuSecondsOf(pid) - before;
}

/** Peak memory of a process since it started, in MiB. */
export function memoryPeakMibOf(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round((Number(kib) * 1024) / MIB);
}

/** Current memory of a process in MiB, with its proportional part of shared memory. */
export function memoryMibOf(pid: number): number {
  const [, kib] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
  return (Number(kib) * 1024) / MIB;
}

/** The process on this machine that listens on a TCP port; null when none is visible to this user. */
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
      // The descriptor was closed meanwhile.
      return false;
    }
  });
}

function descriptorsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    // The process has ended meanwhile, or belongs to another user.
    return [];
  }
}

/** A process under measurement. */
export interface Measured {
  readonly pid: number;
  /** The last lines of its output, for error messages. */
  output(): string;
  close(): Promise<void>;
}

/** Time for a process to drain before it is killed. Longer than `runService` allows. */
const CLOSE_MAX_MS = 30_000;
/** Enough for the stack trace of an error. */
const OUTPUT_CHARACTERS_MAX = 4_000;

export interface ProcessOptions {
  /** Its whole environment, except for PATH. */
  environment: Readonly<Record<string, string>>;
  nodeOptions?: readonly string[];
}

/** Starts a TypeScript file of the repository with this version of Node. */
export function openProcess(file: string, { environment, nodeOptions = [] }: ProcessOptions): Measured {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  // A stack also gives its services the folder for Node's compile cache.
  const env = { ...bareEnvironment(), ...environment };
  const child = spawn(process.execPath, [...nodeOptions, file], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-OUTPUT_CHARACTERS_MAX);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  if (child.pid === undefined) throw new Error(`${file} could not be started`);
  // The process under measurement must not outlive this one.
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

/** Interval of checks, long enough to cost the machine nothing. */
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

/** Waits until a service reports on its admin listener that it is ready. */
export function waitUntilReady(measured: Measured, adminPort: number): Promise<void> {
  const ready = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  return waitFor(`process ${measured.pid} is ready`, ready, { measured, maxMs: 30_000 });
}
