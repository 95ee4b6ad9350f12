import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import type { Admin } from 'kafkajs';
import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { findFreePort } from '../free-port.ts';
import { HOLDS, KEYS_OF_A_HOLD, placeHolds, watchScripts } from '../holds.ts';
import { createKafka } from '../kafka-client.ts';
import { pairGrowing, pairRandom, pairStrangers, prepareLinks } from '../link-facts.ts';
import { type PreparedRecord, publish } from '../prepared-records.ts';
import {
  type Measured,
  memoryPeakMibOf,
  openService,
  pidListeningOn,
  waitFor,
  waitUntilReady,
  watchCpu,
} from '../processes.ts';

/** About a second of work for one linker, so that the first and last batch hardly matter. */
const LINKS = 30_000;
/** A typed identify makes two links: the visitor with the user, and the user with the same id without a type. */
const LINKS_OF_A_STRANGER = 2;
/** Rate of one linker by wall-clock time. */
const PER_SECOND: Bar = { of: 'ours', bound: 'at least', must: 20_000, aim: 50_000 };
/**
 * With queued erasures a link may cost at most twice as much, and must not block Redis for longer than a slow link
 * does.
 */
const HELD_RATE: Bar = { of: 'ratio', bound: 'at least', must: 0.5 };
const LONGEST_SCRIPT: Bar = { of: 'ours', bound: 'at most', must: 20 };
const MILLION = 1_000_000;
const LINKED_MAX_MS = 180_000;
/** Interval of reading the committed offset: a hundredth of the measured time. */
const LOOK_EVERY_MS = 20;
/** Longer than the linker is paused while its facts are published. */
const SESSION_TIMEOUT_MS = '30000';

/**
 * Links per second and per CPU-second of one linker: from link facts in Kafka to acknowledged decisions and committed
 * offsets.
 */
export const linker: Figure = {
  name: 'linker',
  async measure(bench) {
    const adminPort = await findFreePort();
    const group = `${bench.topicPrefix}identity-linker`;
    const settings = { CONSUMER_GROUP: group, ADMIN_PORT: String(adminPort), SESSION_TIMEOUT_MS };
    const measured = openService('identity-linker', { ...bench.serviceEnvironment, ...settings });
    const admin = createKafka('bench', bench.stores.kafka).admin();
    await admin.connect();
    try {
      await waitUntilReady(measured, adminPort);
      const links = (pairs: Parameters<typeof prepareLinks>[1]) => prepareLinks(bench, pairs);
      const measure = async (records: PreparedRecord[], linksEach = 1) =>
        measureLinks(bench, { measured, group, admin, records, linksEach });
      // Warm-up: compiled code and open connections are part of a running service.
      await measure(await links(pairStrangers('warm', LINKS)));
      const strangers = await measure(await links(pairStrangers('s', LINKS)), LINKS_OF_A_STRANGER);
      const random = await measure(await links(pairRandom('r', LINKS)));
      const up = await measure(await links(pairGrowing(bench, 'up', { count: LINKS, order: 'up' })));
      const down = await measure(await links(pairGrowing(bench, 'down', { count: LINKS, order: 'down' })));
      const held = await measureHeld(bench, async () => ({
        strangers: await measure(await links(pairStrangers('h', LINKS)), LINKS_OF_A_STRANGER),
        growing: await measure(await links(pairGrowing(bench, 'held', { count: LINKS, order: 'up' }))),
      }));
      const floor = await measureFloor(bench);
      const also = `peak ${memoryPeakMibOf(measured.pid)} MiB`;
      return [
        ...toRows(`${LINKS} identifies of strangers, two links each`, { ours: strangers, floor, also }),
        ...toRows(`${LINKS} random links`, { ours: random, floor, also }),
        ...toRows(`${LINKS} links, a growing person, ascending keys`, { ours: up, floor, also }),
        ...toRows(`${LINKS} links, a growing person, descending keys`, { ours: down, floor, also }),
        ...toHeldRows('identifies of strangers', { ours: held.strangers, free: strangers, also: held.also }),
        ...toHeldRows('links, a growing person', { ours: held.growing, free: up, also: held.also }),
      ];
    } finally {
      await admin.disconnect();
      await measured.close();
    }
  },
};

interface LinkFigure {
  perCpuSecond: number;
  perSecond: number;
  redisCpuSecondsPerMillion: number;
  longestScriptMs: number;
}

interface Work {
  measured: Measured;
  group: string;
  admin: Admin;
  records: readonly PreparedRecord[];
  linksEach: number;
}

/** Pauses the linker while its facts are published, so that only its own work is timed. */
async function measureLinks(bench: Bench, { measured, group, admin, records, linksEach }: Work): Promise<LinkFigure> {
  const topic = `${bench.topicPrefix}${TOPICS.identityLinks.name}`;
  process.kill(measured.pid, 'SIGSTOP');
  await publish(bench, records).finally(() => process.kill(measured.pid, 'SIGCONT'));
  const own = watchCpu(measured.pid);
  const [redis, longestScript] = [watchRedis(bench), await watchScripts(bench)];
  const start = performance.now();
  const ends = (await admin.fetchTopicOffsets(topic)).filter(({ high }) => Number(high) > 0);
  const caughtUp = async () => {
    const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    const at = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
    return ends.every(({ partition, high }) => (at.get(partition) ?? 0) >= Number(high));
  };
  while (!(await caughtUp())) {
    if (performance.now() - start > LINKED_MAX_MS)
      await waitFor('every link is decided', caughtUp, { measured, maxMs: 0 });
    await delay(LOOK_EVERY_MS);
  }
  const seconds = (performance.now() - start) / 1000;
  const [cpuSeconds, redisCpuSeconds] = [own(), redis()];
  const longestScriptMs = await longestScript();
  return toFigure({ count: linksEach * records.length, cpuSeconds, redisCpuSeconds, seconds, longestScriptMs });
}

/** Measures the same work with queued erasures. They hold none of these people, but every call must check that. */
async function measureHeld<T>(bench: Bench, measure: () => Promise<T>): Promise<T & { also: string }> {
  const { bytesAnIdentity, release } = await placeHolds(bench);
  try {
    return { ...(await measure()), also: `${Math.round(bytesAnIdentity)} bytes of Redis a held identity` };
  } finally {
    await release();
  }
}

function watchRedis(bench: Bench): () => number {
  return watchCpu(pidListeningOn(Number(new URL(bench.stores.redis).port)));
}

/**
 * Floor: bare clients read the same facts, send one pipelined command to Redis for each, and commit. They decide and
 * publish nothing.
 */
async function measureFloor(bench: Bench): Promise<LinkFigure> {
  const environment = {
    ...bench.environment,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.identityLinks.name}`,
    BENCH_KEY: `${bench.topicPrefix}floor`,
    CONSUMER_GROUP: `${bench.topicPrefix}floor`,
    EVENTS: String(2 * LINKS),
  };
  const redis = watchRedis(bench);
  const { events, cpuSeconds, seconds = Number.NaN } = await runFloor('link', environment);
  return toFigure({ count: events, cpuSeconds, redisCpuSeconds: redis(), seconds, longestScriptMs: 0 });
}

interface Seen {
  count: number;
  cpuSeconds: number;
  redisCpuSeconds: number;
  seconds: number;
  longestScriptMs: number;
}

function toFigure({ count, cpuSeconds, redisCpuSeconds, seconds, longestScriptMs }: Seen): LinkFigure {
  return {
    longestScriptMs,
    perCpuSecond: count / cpuSeconds,
    perSecond: count / seconds,
    redisCpuSecondsPerMillion: (redisCpuSeconds / count) * MILLION,
  };
}

function toRows(name: string, { ours, floor, also }: { ours: LinkFigure; floor: LinkFigure; also: string }): Row[] {
  const names = { figure: 'linker', case: name, beside: 'floor: read, one HSET, commit' };
  const toOne = (unit: string, of: keyof LinkFigure): Row =>
    toRow({ ...names, unit, ours: ours[of], theirs: floor[of], also: '' });
  return [
    { ...toOne('links per second', 'perSecond'), bars: [PER_SECOND], also },
    toOne('links per CPU-second', 'perCpuSecond'),
    toOne('Redis CPU-seconds per million links', 'redisCpuSecondsPerMillion'),
  ];
}

function toHeldRows(name: string, { ours, free, also }: { ours: LinkFigure; free: LinkFigure; also: string }): Row[] {
  const names = {
    figure: 'linker',
    case: `${LINKS} ${name}, ${HOLDS} holds of ${KEYS_OF_A_HOLD} identities`,
    beside: 'the same without holds',
  };
  const toOne = (unit: string, of: keyof LinkFigure): Row =>
    toRow({ ...names, unit, ours: ours[of], theirs: free[of], also: '' });
  return [
    { ...toOne('links per second', 'perSecond'), bars: [HELD_RATE], also },
    { ...toOne('links per CPU-second', 'perCpuSecond'), bars: [HELD_RATE] },
    toOne('Redis CPU-seconds per million links', 'redisCpuSecondsPerMillion'),
    { ...toOne('longest script, milliseconds', 'longestScriptMs'), bars: [LONGEST_SCRIPT] },
  ];
}
