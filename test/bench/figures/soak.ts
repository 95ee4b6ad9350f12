import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost, type Figure, type Row, toRow } from '../figure.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import type { Load, LoadResult } from '../load-process.ts';
import { MESSAGE_BYTES } from '../messages.ts';
import { withOpened } from '../opened.ts';
import { cpuSecondsOf, memoryMibOf, ownMemoryMibOf, runChild } from '../processes.ts';
import { openClone } from './stack.ts';

const BATCH = 20;
const SAMPLE_MS = 60_000;
const HOUR_MS = 3_600_000;

interface Sample {
  readonly hours: number;
  readonly mib: number;
  /** Without mapped files. */
  readonly ownMib: number;
}

interface Held {
  readonly name: string;
  readonly samples: readonly Sample[];
  readonly cores: number;
}

interface Hold {
  readonly hours: number;
  readonly perSecond: number;
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

interface Phase {
  readonly hours: number;
  readonly perSecond: number;
}

/** Sends messages to a complete stack at one rate after another, and checks at the end that each is stored once. */
function hold(phases: readonly Phase[]): Promise<Hold[]> {
  return withOpened(async (keep) => {
    const clone = keep(await openClone());
    await clone.command('up', { RATE_LIMITS_BY_ENVIRONMENT: 'demo-production=20000/40000' });
    const holds: Hold[] = [];
    for (const phase of phases) holds.push(await holdPhase(join(clone.folder, '.playline'), phase));
    await clone.command('verify');
    return holds;
  });
}

async function holdPhase(state: string, { hours, perSecond }: Phase): Promise<Hold> {
  const readStack = () => JSON.parse(readFileSync(join(state, 'stack.json'), 'utf8')) as StackFile;
  const { gateway, keys, processes } = readStack();
  const load: Load = {
    port: Number(new URL(gateway).port),
    path: MESSAGES_PATH,
    headers: { 'x-service-publishable-key': keys.production.publishable },
    batchSize: BATCH,
    traffic: 'new messages',
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
      const pid = processes[name]!;
      samples.get(name)!.push({ hours: hoursSinceStart(), mib: memoryMibOf(pid), ownMib: ownMemoryMibOf(pid) });
    }
  }
  const [cpuAfter, seconds] = [cpuSeconds(), (performance.now() - startMs) / 1000];
  const result = await loading;
  if (Object.keys(result.refused).length > 0)
    throw new Error(`responses other than 200: ${JSON.stringify(result.refused)}`);
  const diskAfter = diskOf(state);
  const perMessage = (store: 'clickhouse' | 'kafka') => (diskAfter[store] - diskBefore[store]) / result.events;
  return {
    hours,
    perSecond,
    processes: names.map((name, index) => ({
      name,
      samples: samples.get(name)!,
      cores: (cpuAfter[index]! - cpuBefore[index]!) / seconds,
    })),
    load: result,
    disk: { clickhouse: perMessage('clickhouse'), kafka: perMessage('kafka') },
  };
}

function diskOf(state: string) {
  // du fails if a store deletes a file while it counts; its total is then still correct.
  const bytesOf = (store: string) =>
    Number(spawnSync('du', ['-sb', join(state, 'data', store)], { encoding: 'utf8' }).stdout.split('\t')[0]);
  return { clickhouse: bytesOf('clickhouse'), kafka: bytesOf('kafka') };
}

/** Time after a change of the rate during which memory settles. */
const SETTLE_HOURS = 1;

// What each process needs while a complete stack receives 10,000 messages a second for an hour, and then 1,000 for five
// hours, in which its memory must not grow. The source of infra/SIZING.md.
export const soak: Figure = {
  name: 'soak',
  optional: true,
  async measure({ scale }) {
    const hours = 6 * scale;
    const first = hours / 6;
    const holds = await hold([
      { hours: first, perSecond: 10_000 },
      { hours: hours - first, perSecond: 1_000 },
    ]);
    return [...holds.flatMap(toCostRows), ...toGrowthRows(holds.at(-1)!)];
  },
};

function toCostRows({ hours, perSecond, processes, disk, load }: Hold): Row[] {
  const at = `at ${perSecond} messages/s`;
  const all = processes.reduce((sum, { cores }) => sum + cores, 0);
  const toLargest = (samples: readonly Sample[]) => Math.max(...samples.map(({ mib }) => mib)).toFixed(0);
  return [
    ...processes.map(({ name, samples, cores }) =>
      toRow({
        case: `${name} ${at}`,
        unit: 'cores',
        value: cores,
        peer: 'all processes',
        peerValue: all,
        notes: `${toLargest(samples)} MiB at most`,
      }),
    ),
    ...Object.entries(disk).map(([store, value]) =>
      toRow({
        case: `disk of ${store} ${at}`,
        unit: 'bytes per message',
        value,
        peer: 'JSON',
        peerValue: MESSAGE_BYTES,
      }),
    ),
    toRow({
      case: `${load.events} messages in ${hours} hours`,
      unit: 'ms (p99)',
      value: load.p99Ms,
      peer: 'p50',
      peerValue: load.p50Ms,
      notes: '`verify` found every message once',
    }),
  ];
}

const toGrowthRows = ({ hours, processes }: Hold): Row[] =>
  processes.map(({ name, samples }) => {
    const settled = samples.filter((sample) => sample.hours >= Math.min(SETTLE_HOURS, hours / 2));
    return toRow({
      case: `${name}: growth of its memory`,
      unit: 'MiB per hour',
      value: slopeOf(settled),
      bars: [atMost('value', 2)],
      peer: 'its memory without mapped files, in MiB',
      peerValue: settled[0]!.ownMib,
      notes: `${settled.at(-1)!.ownMib.toFixed(0)} MiB at the end`,
    });
  });

/** The slope of the regression line, in MiB per hour. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: 'hours' | 'ownMib') => samples.reduce((sum, sample) => sum + sample[of], 0) / samples.length;
  const [hours, mib] = [mean('hours'), mean('ownMib')];
  const covariance = samples.reduce((sum, sample) => sum + (sample.hours - hours) * (sample.ownMib - mib), 0);
  return covariance / samples.reduce((sum, sample) => sum + (sample.hours - hours) ** 2, 0);
}
