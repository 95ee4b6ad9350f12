import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost, type Figure, type Row, toRow } from '../figure.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import type { Load, LoadResult } from '../load-process.ts';
import { withOpened } from '../opened.ts';
import { cpuSecondsOf, memoryMibOf, runChild } from '../processes.ts';
import { openClone } from './stack.ts';

const BATCH = 20;
const SAMPLE_MS = 60_000;
const HOUR_MS = 3_600_000;

interface Sample {
  readonly hours: number;
  readonly mib: number;
}

interface Held {
  readonly name: string;
  readonly samples: readonly Sample[];
  readonly cores: number;
}

interface Hold {
  readonly processes: readonly Held[];
  readonly load: LoadResult;
  /** Bytes on disk per message. */
  readonly disk: Readonly<Record<'clickhouse' | 'kafka', number>>;
}

interface StackFile {
  readonly gateway: string;
  readonly keys: { readonly production: { readonly publishable: string } };
  readonly processes: Readonly<Record<string, number>>;
}

/** Sends messages to a complete stack, and checks at the end that each is stored once. */
function hold({ hours, perSecond }: { hours: number; perSecond: number }): Promise<Hold> {
  return withOpened(async (keep) => {
    const clone = keep(await openClone());
    await clone.command('up');
    const state = join(clone.folder, '.playline');
    const readStack = () => JSON.parse(readFileSync(join(state, 'stack.json'), 'utf8')) as StackFile;
    const { gateway, keys, processes } = readStack();
    const load: Load = {
      port: Number(new URL(gateway).port),
      path: MESSAGES_PATH,
      headers: { 'x-service-publishable-key': keys.production.publishable },
      batchSize: BATCH,
      traffic: 'new ids',
      connections: 10,
      requestsPerSecond: perSecond / BATCH,
      warmUpMs: 1_000,
      windowMs: hours * HOUR_MS,
    };
    const names = Object.keys(processes);
    const samples = new Map(names.map((name) => [name, [] as Sample[]]));
    const cpuSeconds = () => names.map((name) => cpuSecondsOf(processes[name]!));
    const [cpuBefore, diskBefore] = [cpuSeconds(), diskOf(state)];
    const startMs = performance.now();
    const hoursSinceStart = () => (performance.now() - startMs) / HOUR_MS;
    const loading = runChild<LoadResult>('load-process', { args: [JSON.stringify(load)] });
    while (hoursSinceStart() < hours) {
      await Promise.race([delay(SAMPLE_MS), loading]);
      const { processes: current } = readStack();
      for (const name of names) {
        if (current[name] !== processes[name]) throw new Error(`${name} was restarted`);
        samples.get(name)!.push({ hours: hoursSinceStart(), mib: memoryMibOf(processes[name]!) });
      }
    }
    const [cpuAfter, seconds] = [cpuSeconds(), (performance.now() - startMs) / 1000];
    const result = await loading;
    if (Object.keys(result.refused).length > 0)
      throw new Error(`responses other than 200: ${JSON.stringify(result.refused)}`);
    await clone.command('verify');
    const diskAfter = diskOf(state);
    const perMessage = (store: 'clickhouse' | 'kafka') => (diskAfter[store] - diskBefore[store]) / result.events;
    return {
      processes: names.map((name, index) => ({
        name,
        samples: samples.get(name)!,
        cores: (cpuAfter[index]! - cpuBefore[index]!) / seconds,
      })),
      load: result,
      disk: { clickhouse: perMessage('clickhouse'), kafka: perMessage('kafka') },
    };
  });
}

function diskOf(state: string) {
  const bytesOf = (store: string) =>
    Number(execFileSync('du', ['-sb', join(state, 'data', store)], { encoding: 'utf8' }).split('\t')[0]);
  return { clickhouse: bytesOf('clickhouse'), kafka: bytesOf('kafka') };
}

const toLatencyRow = ({ events, p50Ms, p99Ms }: LoadResult, hours: number): Row =>
  toRow({
    case: `${events} messages in ${hours} hours`,
    unit: 'ms (p99)',
    value: p99Ms,
    peer: 'p50',
    peerValue: p50Ms,
    notes: '`verify` found every message once',
  });

const SOAK_HOURS = 6;

// Growth of the memory of each process of a complete stack that receives 1,000 messages a second for six hours.
export const soak: Figure = {
  name: 'soak',
  optional: true,
  async measure({ scale }) {
    const hours = SOAK_HOURS * scale;
    const { processes, load } = await hold({ hours, perSecond: 1_000 });
    const rows = processes.map(({ name, samples, cores }) => {
      // The first hour contains compilation and the growth of caches.
      const after = samples.filter((sample) => sample.hours >= Math.min(1, hours / 2));
      return toRow({
        case: `${name}: growth of its memory after the first hour`,
        unit: 'MiB per hour',
        value: slopeOf(after),
        bars: [atMost('value', 2)],
        peer: 'its memory after the first hour, in MiB',
        peerValue: after[0]!.mib,
        notes: `${after.at(-1)!.mib.toFixed(0)} MiB at the end; ${cores.toFixed(3)} cores`,
      });
    });
    return [...rows, toLatencyRow(load, hours)];
  },
};

/** Size of a message in JSON, as sent. */
const MESSAGE_BYTES = 940;

// What each process needs at 10,000 messages a second for an hour: the source of infra/SIZING.md.
export const hour: Figure = {
  name: 'hour',
  optional: true,
  async measure({ scale }) {
    const { processes, load, disk } = await hold({ hours: scale, perSecond: 10_000 });
    const all = processes.reduce((sum, { cores }) => sum + cores, 0);
    const rows = processes.map(({ name, samples, cores }) =>
      toRow({
        case: `${name} at 10,000 messages/s`,
        unit: 'cores',
        value: cores,
        peer: 'all processes',
        peerValue: all,
        notes: `${Math.max(...samples.map(({ mib }) => mib)).toFixed(0)} MiB at most`,
      }),
    );
    const sizes = Object.entries(disk).map(([store, bytes]) =>
      toRow({
        case: `disk of ${store}`,
        unit: 'bytes per message',
        value: bytes,
        peer: 'JSON',
        peerValue: MESSAGE_BYTES,
      }),
    );
    return [...rows, ...sizes, toLatencyRow(load, scale)];
  },
};

/** The slope of the regression line, in MiB per hour. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: keyof Sample) => samples.reduce((sum, sample) => sum + sample[of], 0) / samples.length;
  const [hours, mib] = [mean('hours'), mean('mib')];
  const covariance = samples.reduce((sum, sample) => sum + (sample.hours - hours) * (sample.mib - mib), 0);
  return covariance / samples.reduce((sum, sample) => sum + (sample.hours - hours) ** 2, 0);
}
