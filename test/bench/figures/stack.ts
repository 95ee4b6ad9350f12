import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { atMost, type Bar, type Figure, type Row, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { cpuSecondsOf, findProcesses, memoryMibOf, ROOT } from '../processes.ts';

/** Folders with downloads, which are copied so that the measurement does not depend on the network. */
const DOWNLOADS = ['node', 'npm-cache', 'kafka', 'registry', 'java'];

// Clones the last commit and copies this checkout's downloads. `close` stops the clone's stack and deletes the clone.
export async function openClone() {
  const parent = mkdtempSync(join(tmpdir(), 'playline-bench-clone-'));
  const folder = join(parent, 'clone');
  const startMs = performance.now();
  await run('git', ['clone', '--quiet', ROOT, folder], { folder: parent });
  const seconds = (performance.now() - startMs) / 1000;
  for (const name of DOWNLOADS) {
    const from = join(ROOT, '.playline', name);
    if (existsSync(from)) cpSync(from, join(folder, '.playline', name), { recursive: true });
  }
  /** Runs a local stack command in the clone. @throws Error if the command fails */
  const command = (name: string, settings = {}): Promise<void> =>
    run(process.execPath, [join('infra', 'local', 'bootstrap.mjs'), name], { folder, settings });
  const close = () => command('down').finally(() => rmSync(parent, { recursive: true, force: true }));
  return { folder, seconds, command, close };
}

/** Runs a program without this process's settings, so that the clone uses its own ports and addresses. */
async function run(
  program: string,
  args: string[],
  { folder, settings = {} }: { folder: string; settings?: Record<string, string> },
) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PLAYLINE_')));
  env.PATH = `${dirname(process.execPath)}:${env.PATH}`;
  await promisify(execFile)(program, args, { cwd: folder, env: { ...env, ...settings } });
}

// Time from clone to first stored event, without downloads. The second start needs no installation.
export const start: Figure = {
  name: 'start',
  optional: true,
  measure: () =>
    withOpened(async (keep) => {
      const clone = keep(await openClone());
      const timeStart = async () => {
        const startMs = performance.now();
        await clone.command('up');
        return (performance.now() - startMs) / 1000;
      };
      const first = await timeStart();
      await clone.command('down');
      return [
        toRow({
          case: 'clone to first stored event, warm',
          unit: 'seconds',
          value: clone.seconds + first,
          peer: 'the clone’s second start',
          peerValue: await timeStart(),
          notes: `clone ${clone.seconds.toFixed(1)} s`,
        }),
      ];
    }),
};

/** Times of the measurements, in minutes after startup. V8 is still compiling during the first minutes. */
const UPTIME_MINUTES = [2, 10];
const WINDOW_MS = 60_000;
const STORES = new Set(['kafka', 'registry', 'redis', 'clickhouse', 'chain']);

interface ProcessUsage {
  readonly name: string;
  readonly percent: number;
  readonly mib: number;
}

export const idle: Figure = {
  name: 'idle',
  optional: true,
  measure: () =>
    withOpened(async (keep) => {
      const clone = keep(await openClone());
      await clone.command('up');
      const upMs = performance.now();
      const rows: Row[] = [];
      for (const minutes of UPTIME_MINUTES) {
        await delay(upMs + minutes * 60_000 - performance.now());
        rows.push(...toRows(await watch(clone.folder), `idle local stack, ${minutes} minutes after startup`));
      }
      return rows;
    }),
};

async function watch(folder: string): Promise<ProcessUsage[]> {
  const { processes } = JSON.parse(readFileSync(join(folder, '.playline', 'stack.json'), 'utf8')) as {
    processes: Record<string, number>;
  };
  const names = new Map(Object.entries(processes).map(([name, pid]) => [pid, name]));
  // Includes processes that the start command left running.
  const pids = findProcesses(
    (proc) =>
      readFileSync(`${proc}/cmdline`, 'utf8').includes(folder) || readlinkSync(`${proc}/cwd`).startsWith(folder),
  );
  const measured = pids.map((pid) => ({ pid, cpuS: cpuSecondsOf(pid) }));
  const startMs = performance.now();
  await delay(WINDOW_MS);
  const seconds = (performance.now() - startMs) / 1000;
  return measured.map(({ pid, cpuS }) => ({
    name: names.get(pid) ?? 'supervisor',
    percent: (100 * (cpuSecondsOf(pid) - cpuS)) / seconds,
    mib: memoryMibOf(pid),
  }));
}

function toRows(parts: readonly ProcessUsage[], name: string): Row[] {
  const stores = parts.filter((part) => STORES.has(part.name));
  const row = (unit: string, of: 'percent' | 'mib', bar: Bar) => {
    const sum = (list: readonly ProcessUsage[]) => list.reduce((total, part) => total + part[of], 0);
    const largest = parts.toSorted((a, b) => b[of] - a[of]).slice(0, 6);
    return toRow({
      case: name,
      unit,
      value: sum(parts),
      bars: [bar],
      peer: 'the stores alone',
      peerValue: sum(stores),
      notes: `${parts.length} processes; ${largest.map((part) => `${part.name} ${part[of].toFixed(1)}`).join(', ')}`,
    });
  };
  return [row('percent of a core', 'percent', atMost('value', 5)), row('MiB (Pss)', 'mib', atMost('value', 2_560))];
}
