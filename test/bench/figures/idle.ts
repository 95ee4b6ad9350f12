import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openClone } from '../clone.ts';
import type { Bar, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { cpuSecondsOf, memoryMibOf } from '../processes.ts';

/** Minutes after a start at which a minute is measured. In the first few V8 still compiles; later a stack only rests. */
const AGES_MIN = [2, 10];
/** Long enough that work done every half minute happens twice. */
const WINDOW_MS = 60_000;
const CPU: Bar = { of: 'ours', bound: 'at most', must: 5 };
const MEMORY: Bar = { of: 'ours', bound: 'at most', must: 2_560 };
const STORES = new Set(['kafka', 'registry', 'redis', 'clickhouse', 'chain']);

interface Part {
  readonly name: string;
  /** Percent of one core. */
  readonly percent: number;
  readonly mib: number;
}

/** Cost of the whole local stack without requests: CPU during two minutes, and memory, of all processes together. */
export const idle: Figure = {
  name: 'idle',
  optional: true,
  async measure() {
    const clone = await openClone();
    try {
      await clone.command('up');
      const upMs = performance.now();
      const rows: Row[] = [];
      for (const ageMin of AGES_MIN) {
        await delay(upMs + ageMin * 60_000 - performance.now());
        rows.push(...toRows(await watch(clone.folder), `the local stack at rest, ${ageMin} minutes after its start`));
      }
      return rows;
    } finally {
      await clone.close();
    }
  },
};

/** Finds processes by their working folder or their arguments, so that leftovers of a start count too. */
function processesOf(folder: string): Map<number, string> {
  const { processes } = JSON.parse(readFileSync(join(folder, '.playline', 'stack.json'), 'utf8')) as {
    processes: Record<string, number>;
  };
  const names = new Map(Object.entries(processes).map(([name, pid]) => [pid, name]));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && belongsTo(name, folder));
  return new Map(pids.map((pid) => [Number(pid), names.get(Number(pid)) ?? 'supervisor']));
}

function belongsTo(pid: string, folder: string): boolean {
  try {
    const isNamed = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder);
    return isNamed || readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
  } catch {
    // The process has ended meanwhile, or belongs to another user.
    return false;
  }
}

async function watch(folder: string): Promise<Part[]> {
  const begun = [...processesOf(folder)].map(([pid, name]) => ({ pid, name, cpuS: cpuSecondsOf(pid) }));
  const startMs = performance.now();
  await delay(WINDOW_MS);
  const seconds = (performance.now() - startMs) / 1000;
  return begun.map(({ pid, name, cpuS }) => ({
    name,
    percent: (100 * (cpuSecondsOf(pid) - cpuS)) / seconds,
    mib: memoryMibOf(pid),
  }));
}

function toRows(parts: readonly Part[], name: string): Row[] {
  const stores = parts.filter(({ name }) => STORES.has(name));
  const row = (unit: string, of: (part: Part) => number, bar: Bar) => {
    const sum = (list: readonly Part[]) => list.reduce((total, part) => total + of(part), 0);
    const most = parts.toSorted((a, b) => of(b) - of(a)).slice(0, 6);
    return toRow({
      figure: 'idle',
      case: name,
      unit,
      ours: sum(parts),
      bars: [bar],
      beside: 'its stores alone',
      theirs: sum(stores),
      also: `${parts.length} processes; ${most.map((part) => `${part.name} ${of(part).toFixed(1)}`).join(', ')}`,
    });
  };
  return [row('per cent of a core', ({ percent }) => percent, CPU), row('MiB (Pss)', ({ mib }) => mib, MEMORY)];
}
