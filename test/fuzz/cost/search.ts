/** Searches for the body with the highest cost relative to a typical valid body of the same size. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Random } from '@playline/testkit/random';
import { MESSAGES_PATH, toRequest } from '../../bench/load-client.ts';
import { medianOf } from '../../bench/quantile.ts';
import { openCostGateway } from './gateway.ts';
import { CODINGS, createInitialGenomes, type Genome, mutateTimes, toBody } from './genome.ts';
import { typicalBody } from './typical.ts';

export const RATIO_MAX = 3;

const PARENTS = 12;
/** Number of bodies that are remeasured at the end, because a single measurement may be high by chance. */
const FINALISTS = 8;
const REPETITIONS = 3;
const FINAL_REPETITIONS = 15;
/** Minimum CPU time per measurement. Shorter measurements are imprecise, because the CPU clock counts microseconds. */
const MEASURED_MIN_US = 6_000;

/**
 * Starts with known shapes and makes small changes to the most expensive bodies.
 *
 * @param shouldContinue called before each body with the number of bodies so far
 * @returns the number of measured bodies; the most expensive bodies, remeasured more precisely; and bodies
 *   that were charged less than their size in KiB
 */
export async function searchCosts(random: Random, shouldContinue: (bodies: number) => boolean) {
  const meter = await openMeter();
  try {
    const seen: MeasuredBody[] = [];
    const first = createInitialGenomes();
    // Warms up, so that all code paths are compiled.
    for (const genome of first) await meter.measure(genome, 1);
    for (let bodies = 0; shouldContinue(bodies); bodies++) {
      seen.sort(byRatio).splice(200);
      const parent = seen[random.below(Math.min(PARENTS, seen.length))]?.genome;
      const genome = first[bodies] ?? (parent && mutateTimes(parent, 1 + random.below(3), random));
      if (genome !== undefined) seen.push(await meter.measure(genome, REPETITIONS));
    }
    const undercharged = seen.filter(({ charged, bytes }) => charged < Math.floor(bytes / 1024));
    const mostExpensive: MeasuredBody[] = [];
    for (const { genome } of seen.sort(byRatio).slice(0, FINALISTS))
      mostExpensive.push(await meter.measure(genome, FINAL_REPETITIONS));
    return { bodies: meter.bodies, mostExpensive: mostExpensive.sort(byRatio), undercharged };
  } finally {
    await meter.close();
  }
}

type MeasuredBody = Awaited<ReturnType<Awaited<ReturnType<typeof openMeter>>['measure']>>;

const byRatio = (a: { ratio: number }, b: { ratio: number }) => b.ratio - a.ratio;

async function openMeter() {
  const gateway = await openCostGateway();
  const worker = new Worker(new URL('./sender.ts', import.meta.url));
  let [bodies, status] = [0, 0];
  /** @returns the CPU time of this thread, which runs the gateway, in microseconds per request */
  const post = async (request: Buffer, times: number) => {
    const before = process.threadCpuUsage();
    worker.postMessage({ port: gateway.port, request, times });
    [status] = (await once(worker, 'message')) as [number];
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / times;
  };
  const timesFor = async (request: Buffer) =>
    Math.min(100, Math.max(1, Math.ceil(MEASURED_MIN_US / (await post(request, 1)))));
  return {
    get bodies() {
      return bodies;
    },
    /** Measures a body, alternating with a typical body of the same size and coding. Costs are medians. */
    measure: async (genome: Genome, repetitions: number) => {
      bodies++;
      const now = new Date();
      const body = toBody(genome, now);
      const toPost = (content: Buffer) => {
        const sent = CODINGS[genome.coding](content);
        return { sent, request: toRequest(MESSAGES_PATH, { 'content-encoding': genome.coding }, sent) };
      };
      const { sent, request } = toPost(body);
      const { request: typical } = toPost(typicalBody(body.length, now));
      const [costs, typicalCosts]: [number[], number[]] = [[], []];
      const typicalTimes = await timesFor(typical);
      const times = await timesFor(request);
      for (let n = 0; n < repetitions; n++) {
        typicalCosts.push(await post(typical, typicalTimes));
        costs.push(await post(request, times));
      }
      const [microseconds, typicalMicroseconds] = [medianOf(costs), medianOf(typicalCosts)];
      return {
        genome,
        sentBytes: sent.length,
        bytes: body.length,
        status,
        charged: gateway.charged,
        microseconds,
        typicalMicroseconds,
        ratio: Number((microseconds / typicalMicroseconds).toFixed(2)),
      };
    },
    close: async () => {
      await worker.terminate();
      await gateway.close();
    },
  };
}
