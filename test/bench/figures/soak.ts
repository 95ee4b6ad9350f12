import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost, type Figure, toRow } from '../figure.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import type { Load, LoadResult } from '../load-process.ts';
import { withOpened } from '../opened.ts';
import { cpuSecondsOf, memoryMibOf, runChild } from '../processes.ts';
import { openClone } from './stack.ts';

const HOURS = 6;
const BATCH = 20;
const BATCHES_PER_SECOND = 50;
const SAMPLE_MS = 60_000;
const HOUR_MS = 3_600_000;

interface Sample {
  readonly hours: number;
  readonly mib: number;
}

interface StackFile {
  readonly gateway: string;
  readonly keys: { readonly production: { readonly publishable: string } };
  readonly processes: Readonly<Record<string, number>>;
}

// Memory and CPU time of each process of a complete stack that receives 1,000 messages a second for six hours.
export const soak: Figure = {
  name: 'soak',
  optional: true,
  measure: ({ scale }) =>
    withOpened(async (keep) => {
      const hours = HOURS * scale;
      const clone = keep(await openClone());
      await clone.command('up');
      const readStack = () => JSON.parse(readFileSync(join(clone.folder, '.playline/stack.json'), 'utf8')) as StackFile;
      const { gateway, keys, processes } = readStack();
      const load: Load = {
        port: Number(new URL(gateway).port),
        path: MESSAGES_PATH,
        headers: { 'x-service-publishable-key': keys.production.publishable },
        batchSize: BATCH,
        traffic: 'new ids',
        connections: 10,
        requestsPerSecond: BATCHES_PER_SECOND,
        warmUpMs: 1_000,
        windowMs: hours * HOUR_MS,
      };
      const samples = new Map(Object.keys(processes).map((name) => [name, [] as Sample[]]));
      const cpuBefore = new Map(Object.entries(processes).map(([name, pid]) => [name, cpuSecondsOf(pid)]));
      const startMs = performance.now();
      const hoursSinceStart = () => (performance.now() - startMs) / HOUR_MS;
      const loading = runChild<LoadResult>('load-process', { args: [JSON.stringify(load)] });
      while (hoursSinceStart() < hours) {
        await Promise.race([delay(SAMPLE_MS), loading]);
        const { processes: current } = readStack();
        for (const [name, pid] of Object.entries(processes)) {
          if (current[name] !== pid) throw new Error(`${name} was restarted`);
          samples.get(name)!.push({ hours: hoursSinceStart(), mib: memoryMibOf(pid) });
        }
      }
      const cores = (name: string, pid: number) =>
        (cpuSecondsOf(pid) - cpuBefore.get(name)!) / ((performance.now() - startMs) / 1000);
      const rows = Object.entries(processes).map(([name, pid]) => {
        // The first hour contains compilation and the growth of caches.
        const after = samples.get(name)!.filter((sample) => sample.hours >= hours / HOURS);
        return toRow({
          case: `${name}: growth of its memory after the first hour`,
          unit: 'MiB per hour',
          value: slopeOf(after),
          bars: [atMost('value', 2)],
          peer: 'its memory after the first hour, in MiB',
          peerValue: after[0]!.mib,
          notes: `${after.at(-1)!.mib.toFixed(0)} MiB at the end; ${cores(name, pid).toFixed(3)} cores`,
        });
      });
      const { events, refused, p50Ms, p99Ms } = await loading;
      if (Object.keys(refused).length > 0) throw new Error(`responses other than 200: ${JSON.stringify(refused)}`);
      await clone.command('verify');
      const latency = { case: `${events} messages in ${hours} hours`, unit: 'ms (p99)', value: p99Ms };
      return [
        ...rows,
        toRow({ ...latency, peer: 'p50', peerValue: p50Ms, notes: '`verify` found every message once' }),
      ];
    }),
};

/** The slope of the regression line, in MiB per hour. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: keyof Sample) => samples.reduce((sum, sample) => sum + sample[of], 0) / samples.length;
  const [hours, mib] = [mean('hours'), mean('mib')];
  const covariance = samples.reduce((sum, sample) => sum + (sample.hours - hours) * (sample.mib - mib), 0);
  return covariance / samples.reduce((sum, sample) => sum + (sample.hours - hours) ** 2, 0);
}
