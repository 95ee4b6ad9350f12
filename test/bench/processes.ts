/** Starts processes to measure, and reads their CPU time and memory from /proc. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@playline/testkit';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Clock ticks per second in /proc (USER_HZ): 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program name in parentheses, which may contain spaces. Times are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** @returns a function that returns the CPU seconds used since this call; NaN for an unknown process */
export function watchCpu(pid: number | null): () => number {
  if (pid === null) return () => Number.NaN;
  const before = cpuSecondsOf(pid);
  return () => cpuSecondsOf(pid) - before;
}

export function memoryPeakMibOf(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Returns a process's current memory in MiB, including its proportional share of shared memory and mapped files. */
export const memoryMibOf = (pid: number): number => readPss(pid, 'Pss');

/** Returns a process's current memory in MiB without mapped files, which the kernel can release at any time. */
export const ownMemoryMibOf = (pid: number): number => readPss(pid, 'Pss_Anon');

function readPss(pid: number, field: 'Pss' | 'Pss_Anon'): number {
  const [, kib] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}

/** Reads process data. @returns null if the process has exited or belongs to another user */
function tryRead<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Returns the ids of this user's processes whose /proc folder satisfies the test. */
export function findProcesses(test: (folder: string) => boolean): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => tryRead(() => test(`/proc/${pid}`)) === true).map(Number);
}

/** @returns the id of the process that listens on a TCP port; null if this user cannot see it */
export function pidListeningOn(port: number): number | null {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const LISTEN = '0A';
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n'));
  const rows = lines.map((line) => line.trim().split(/\s+/));
  const inode = rows.find((row) => row[1]?.endsWith(`:${hex}`) && row[3] === LISTEN)?.[9];
  if (inode === undefined) return null;
  const hasSocket = (folder: string) =>
    readdirSync(`${folder}/fd`).some(
      (name) => tryRead(() => readlinkSync(`${folder}/fd/${name}`)) === `socket:[${inode}]`,
    );
  return findProcesses(hasSocket)[0] ?? null;
}

export interface Measured {
  readonly pid: number;
  output(): string;
  exitCode(): number | null;
  close(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** Time that a process has to shut down before it is killed; longer than the limit in `runService`. */
const CLOSE_MAX_MS = 30_000;
const OUTPUT_CHARACTERS_MAX = 4_000;

interface ProcessOptions {
  environment: Readonly<Record<string, string>>;
  args?: readonly string[];
  nodeOptions?: readonly string[] | undefined;
}

/** Runs a TypeScript file in a child process, which is killed when this process exits. */
export function openProcess(file: string, { environment, args = [], nodeOptions = [] }: ProcessOptions): Measured {
  const env = { ...bareEnvironment(), ...environment };
  const options = { cwd: ROOT, env, stdio: ['ignore' as const, 'pipe' as const, 'pipe' as const] };
  const child: ChildProcess = spawn(process.execPath, [...nodeOptions, file, ...args], options);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} could not be started`);
  let output = '';
  const append = (chunk: Buffer) => {
    output = (output + chunk).slice(-OUTPUT_CHARACTERS_MAX);
  };
  child.stdout?.on('data', append);
  child.stderr?.on('data', append);
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.once('exit', () => process.removeListener('exit', atExit));
  return {
    pid,
    output: () => output,
    exitCode: () => child.exitCode,
    close: (signal = 'SIGTERM') => stop(child, signal),
  };
}

async function stop(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MAX_MS);
  child.kill(signal);
  await ended;
  clearTimeout(timer);
}

interface ChildOptions<R> {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly timeout?: number;
  readonly onBegin?: (child: ChildProcess) => void;
  readonly onResult?: (result: R) => void;
}

/** Runs a file from this folder in a child process until it exits. @returns the result that the child sends */
export function runChild<R>(file: string, { args = [], onBegin, onResult, ...options }: ChildOptions<R>): Promise<R> {
  const path = fileURLToPath(new URL(`./${file}.ts`, import.meta.url));
  const child = fork(path, [...args], { ...options, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let result: R | undefined;
  child.on('message', (message: 'begin' | R) => {
    if (message === 'begin') return onBegin?.(child);
    result = message as R;
    onResult?.(result);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      result === undefined || code !== 0 ? reject(new Error(`${file} exited with ${code}`)) : resolve(result),
    );
  });
}

export const POLL_MS = 200;

/** Waits for a condition. @throws Error, with the last output of `measured`, on a timeout or if the process exits */
export async function waitFor(
  what: string,
  condition: () => Promise<boolean>,
  { measured, maxMs }: { measured?: Measured | undefined; maxMs: number },
): Promise<void> {
  const endMs = performance.now() + maxMs;
  while (!(await condition().catch(() => false))) {
    const hasExited = measured !== undefined && !existsSync(`/proc/${measured.pid}`);
    if (hasExited) throw new Error(`the process exited before ${what}\n${measured.output()}`);
    if (performance.now() > endMs) throw new Error(`timeout after ${maxMs} ms: ${what}\n${measured?.output() ?? ''}`);
    await delay(POLL_MS);
  }
}
