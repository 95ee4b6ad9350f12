import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Random } from '@playline/testkit/random';
import { type CostGateway, openCostGateway } from './gateway.ts';
import { CODINGS, firstGenomes, type Genome, mutate, toBody } from './genome.ts';
import { honestBody } from './honest.ts';

/** A body may cost at most this many times as much as a typical valid one of its size. */
export const RATIO_MAX = 3;

export interface Costed {
  genome: Genome;
  /** Bytes as sent, and after decompression. */
  sentBytes: number;
  bytes: number;
  status: number;
  /** Units charged for it. */
  charged: number;
  /** CPU time of the gateway's thread for one such request, and for a valid one of the same size and coding. */
  microseconds: number;
  honestMicroseconds: number;
  ratio: number;
}

export interface SearchReport {
  bodies: number;
  /** The most expensive bodies, measured again more precisely. */
  dearest: Costed[];
  /** Bodies that were charged less than their size in KiB. */
  undercharged: Costed[];
}

export interface SearchOptions {
  random: Random;
  /** Called before each body with the number so far. The search ends when it returns false. */
  goesOn: (bodies: number) => boolean;
}

/** Number of the most expensive bodies that are changed further. */
const PARENTS = 12;
/** Number of bodies that are measured again at the end, because a single measurement may be high by chance. */
const FINALISTS = 8;
/** Repetitions of a first measurement, and of the final one. */
const LOOKS = 3;
const LAST_LOOKS = 15;
/** The thread's clock has microseconds, so shorter measurements are imprecise. */
const MEASURED_US = 6_000;

/**
 * Searches for the body that costs most compared with a typical valid one of its size. Starts with known shapes and
 * makes small changes to the most expensive ones. The measure is CPU time of the gateway's own thread, alternating with
 * the valid body, as the median of several measurements.
 */
export async function searchCosts({ random, goesOn }: SearchOptions): Promise<SearchReport> {
  const meter = await openMeter();
  try {
    const seen: Costed[] = [];
    const first = firstGenomes();
    await meter.warmUp(first);
    for (let bodies = 0; goesOn(bodies); bodies++) {
      seen.sort((one, other) => other.ratio - one.ratio).splice(200);
      const parent = seen[random.below(Math.min(PARENTS, seen.length))]?.genome;
      const genome = first[bodies] ?? (parent === undefined ? null : steps(parent, random));
      if (genome !== null) seen.push(await meter.cost(genome, LOOKS));
    }
    const undercharged = seen.filter(({ charged, bytes }) => charged < Math.floor(bytes / 1024));
    const finalists = seen.sort((one, other) => other.ratio - one.ratio).slice(0, FINALISTS);
    const dearest: Costed[] = [];
    for (const { genome } of finalists) dearest.push(await meter.cost(genome, LAST_LOOKS));
    dearest.sort((one, other) => other.ratio - one.ratio);
    return { bodies: meter.bodies, dearest, undercharged };
  } finally {
    await meter.close();
  }
}

function steps(genome: Genome, random: Random): Genome {
  let changed = genome;
  for (let times = 1 + random.below(3); times > 0; times--) changed = mutate(changed, random);
  return changed;
}

interface Meter {
  readonly bodies: number;
  warmUp(genomes: readonly Genome[]): Promise<void>;
  cost(genome: Genome, looks: number): Promise<Costed>;
  close(): Promise<void>;
}

async function openMeter(): Promise<Meter> {
  const gateway = await openCostGateway();
  const worker = new Worker(new URL('./sender.ts', import.meta.url));
  const post = async (request: Buffer, times: number) => {
    worker.postMessage({ port: gateway.port, request, times });
    const [status] = (await once(worker, 'message')) as [number];
    return status;
  };
  let bodies = 0;
  const cost = async (genome: Genome, looks: number) => {
    bodies++;
    return costOf(genome, looks, { gateway, post });
  };
  return {
    get bodies() {
      return bodies;
    },
    // Runs all code paths until they are compiled.
    warmUp: async (genomes) => {
      for (const genome of genomes) await cost(genome, 1);
    },
    cost,
    close: async () => {
      await worker.terminate();
      await gateway.close();
    },
  };
}

interface Measuring {
  gateway: CostGateway;
  post: (request: Buffer, times: number) => Promise<number>;
}

async function costOf(genome: Genome, looks: number, { gateway, post }: Measuring): Promise<Costed> {
  const now = new Date();
  const body = toBody(genome, now);
  const request = toRequest(body, genome.coding);
  const honest = toRequest(honestBody(body.length, now), genome.coding);
  const [own, theirs]: [number[], number[]] = [[], []];
  let status = 0;
  const measure = async (bytes: Buffer, times: number) => {
    const before = process.threadCpuUsage();
    status = await post(bytes, times);
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / times;
  };
  const timesFor = async (bytes: Buffer) =>
    Math.min(100, Math.max(1, Math.ceil(MEASURED_US / (await measure(bytes, 1)))));
  const honestTimes = await timesFor(honest.head);
  const times = await timesFor(request.head);
  for (let look = 0; look < looks; look++) {
    theirs.push(await measure(honest.head, honestTimes));
    own.push(await measure(request.head, times));
  }
  const [microseconds, honestMicroseconds] = [medianOf(own), medianOf(theirs)];
  return {
    genome,
    sentBytes: request.sentBytes,
    bytes: body.length,
    status,
    charged: gateway.charged,
    microseconds,
    honestMicroseconds,
    ratio: Number((microseconds / honestMicroseconds).toFixed(2)),
  };
}

function toRequest(body: Buffer, coding: Genome['coding']): { head: Buffer; sentBytes: number } {
  const sent = CODINGS[coding](body);
  const lines = [
    'POST /v1/audience/messages HTTP/1.1',
    'host: gateway',
    'content-type: application/json',
    `content-encoding: ${coding}`,
    `content-length: ${sent.length}`,
  ];
  return { head: Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), sent]), sentBytes: sent.length };
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[values.length >> 1] ?? Number.NaN;
}
