import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import type { Random } from '@playline/testkit/random';
import type { ProxiedProcess } from '../faults/writer-process.ts';
import { type Api, type FeedRig, WAIT_MAX_MS } from './feed-rig.ts';

const BLOCK_ROWS = { min: 6, max: 30 };
/** Maximum delay before an insert and before its response, so that reads happen in between. */
const INSERT_MAX_MS = 40;
/** Fraction of longer delays, during which a new reader can read the whole feed between an insert and the watermark. */
const LONG_FRACTION = 0.1;
const LONG_MS = { min: 300, max: 1_000 };

export interface RunningProcesses {
  readonly writers: readonly ProxiedProcess[];
  readonly apis: readonly Api[];
  addWriter(): Promise<ProxiedProcess>;
  addApi(): Promise<Api>;
  /** Starts an API without waiting for readiness, because no API is ready before the first watermark. */
  addUnreadyApi(): Promise<Api>;
  remove(member: ProxiedProcess | Api): void;
}

interface OpenProcesses extends RunningProcesses {
  close(): Promise<void>;
}

export async function openProcesses(rig: FeedRig, random: Random): Promise<OpenProcesses> {
  let writers: readonly ProxiedProcess[] = [];
  let apis: readonly Api[] = [];
  const whenReady = (what: string, process: ProxiedProcess) => until(what, () => process.isReady(), WAIT_MAX_MS);
  const isLong = () => random.chance(LONG_FRACTION);
  const pause = () => delay(isLong() ? random.integer(LONG_MS.min, LONG_MS.max) : random.integer(0, INSERT_MAX_MS));
  const processes: OpenProcesses = {
    get writers() {
      return writers;
    },
    get apis() {
      return apis;
    },
    async addWriter() {
      const writer = await rig.startWriter(random.integer(BLOCK_ROWS.min, BLOCK_ROWS.max));
      writer.clickhouse.watch = { onRequest: pause, onResponse: () => pause().then(() => false) };
      await whenReady('a writer is ready', writer);
      writers = [...writers, writer];
      return writer;
    },
    async addApi() {
      const api = await rig.startApi();
      await whenReady('an API is ready', api.process);
      apis = [...apis, api];
      return api;
    },
    async addUnreadyApi() {
      const api = await rig.startApi();
      await until('an API responds', async () => (await fetch(api.url)).status === 404, WAIT_MAX_MS);
      apis = [...apis, api];
      return api;
    },
    remove(member) {
      writers = writers.filter((each) => each !== member);
      apis = apis.filter((each) => each !== member);
    },
    close: async () => {
      await Promise.all([...writers, ...apis.map(({ process }) => process)].map((process) => process.close()));
    },
  };
  await Promise.all([processes.addWriter(), processes.addWriter(), processes.addApi(), processes.addApi()]);
  return processes;
}
