import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { IDENTITY_KEY_BYTES, TOPICS } from '@playline/contracts';
import { openRedisPeople } from '@playline/people/redis';
import { Redis } from 'ioredis';
import { atLeast, atMost, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { withAdmin } from '../kafka-client.ts';
import { type Pair, pairGrowing, pairNewIds, pairRandom, prepareLinks } from '../link-facts.ts';
import { withOpened } from '../opened.ts';
import { publish } from '../prepared-records.ts';
import { type Measured, memoryPeakMibOf, pidListeningOn, waitFor, watchCpu } from '../processes.ts';
import { groupOf, startService } from '../services.ts';

/** Number of concurrent erasures, and of identities per erasure. Real people have far fewer identities. */
const HOLDS = 1_000;
const KEYS_PER_HOLD = 300;

/** Slow log threshold in microseconds; above 0, because each entry has a small cost. */
const SLOWLOG_FROM_US = 300;
const SLOWLOG_ENTRIES_MAX = 20_000;

async function addHolds(bench: Bench): Promise<{ bytesPerIdentity: number; release(): Promise<void> }> {
  const url = bench.environment.REDIS_URL ?? '';
  const [people, redis] = [await openRedisPeople({ url }), new Redis(url)];
  const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const { environmentId } = bench;
  const names = Array.from({ length: HOLDS }, () => ({ environmentId, erasureId: randomBytes(16) }));
  const before = await memory();
  for (const name of names) {
    const keys = Array.from({ length: KEYS_PER_HOLD }, () => randomBytes(IDENTITY_KEY_BYTES));
    await people.guards.putHold({ ...name, keys, cutoffMs: Date.now(), lapsesAtMs: null });
  }
  const bytesPerIdentity = ((await memory()) - before) / (HOLDS * KEYS_PER_HOLD);
  const release = async () => {
    for (const name of names) await people.guards.releaseHold(name);
    redis.disconnect();
    await people.close();
  };
  return { bytesPerIdentity, release };
}

/** @returns a function that returns the duration of the longest script since this call, in milliseconds */
async function watchScripts(bench: Bench): Promise<() => Promise<number>> {
  const redis = new Redis(bench.environment.REDIS_URL ?? '');
  const names = ['slowlog-log-slower-than', 'slowlog-max-len'] as const;
  const previous = await Promise.all(
    names.map(async (name) => ((await redis.config('GET', name)) as string[])[1] ?? ''),
  );
  await redis.config('SET', names[0], SLOWLOG_FROM_US);
  await redis.config('SET', names[1], SLOWLOG_ENTRIES_MAX);
  await redis.slowlog('RESET');
  return async () => {
    const entries = (await redis.slowlog('GET', SLOWLOG_ENTRIES_MAX)) as [number, number, number, string[]][];
    for (const [index, name] of names.entries()) await redis.config('SET', name, previous[index] ?? '');
    redis.disconnect();
    const scripts = entries.filter(([, , , [command = '']]) => command.toUpperCase().startsWith('EVAL'));
    return Math.max(SLOWLOG_FROM_US, ...scripts.map(([, , microseconds]) => microseconds)) / 1_000;
  };
}

/** About one second of work for a linker, so that start and end effects are negligible. */
const LINKS = 30_000;
/** A typed identify message creates two links: visitor to user, and typed user id to the same id without a type. */
const LINKS_PER_NEW_PAIR = 2;
/** Poll interval for the committed offset: about 1 % of the measured time. */
const POLL_MS = 20;
const LINKED_MAX_MS = 180_000;
/** Longer than the time for which the linker is suspended while facts are published. */
const SESSION_TIMEOUT_MS = '30000';

type LinkFigure = ReturnType<typeof toFigure>;

export const linker: Figure = {
  name: 'linker',
  measure: (bench) =>
    withOpened(async (keep) => {
      const server = keep(await startService(bench, 'identity-linker', { SESSION_TIMEOUT_MS }));
      const measure = (pairs: readonly Pair[], perPair = 1) => measureLinks(bench, server, { pairs, perPair });
      const grow = (tag: string, order: 'up' | 'down') => pairGrowing(bench, tag, { count: LINKS, order });
      await measure(pairNewIds('warm', LINKS));
      const newIds = await measure(pairNewIds('s', LINKS), LINKS_PER_NEW_PAIR);
      const random = await measure(pairRandom('r', LINKS));
      const up = await measure(grow('up', 'up'));
      const down = await measure(grow('down', 'down'));
      // The holds affect none of these people, but every script call must check them.
      const { bytesPerIdentity, release } = await addHolds(bench);
      keep({ close: release });
      const heldNewIds = await measure(pairNewIds('h', LINKS), LINKS_PER_NEW_PAIR);
      const heldGrowing = await measure(grow('held', 'up'));
      const floor = await measureFloor(bench);
      const notes = `peak ${memoryPeakMibOf(server.pid)} MiB`;
      const heldNotes = `${Math.round(bytesPerIdentity)} bytes in Redis per held identity`;
      return [
        ...toRows('identify messages with new ids, two links each', { own: newIds, floor, notes }),
        ...toRows('random links', { own: random, floor, notes }),
        ...toRows('links to a growing person, ascending keys', { own: up, floor, notes }),
        ...toRows('links to a growing person, descending keys', { own: down, floor, notes }),
        ...toHeldRows('identify messages with new ids', { own: heldNewIds, base: newIds, notes: heldNotes }),
        ...toHeldRows('links to a growing person', { own: heldGrowing, base: up, notes: heldNotes }),
      ];
    }),
};

/** Suspends the linker while facts are published, so that only the linker's work is measured. */
async function measureLinks(
  bench: Bench,
  server: Measured,
  { pairs, perPair }: { pairs: readonly Pair[]; perPair: number },
): Promise<LinkFigure> {
  const records = await prepareLinks(bench, pairs);
  process.kill(server.pid, 'SIGSTOP');
  await publish(bench, records).finally(() => process.kill(server.pid, 'SIGCONT'));
  const own = watchCpu(server.pid);
  const [redis, longestScript] = [watchRedis(bench), await watchScripts(bench)];
  const startMs = performance.now();
  await waitUntilCommitted(bench, server);
  const seconds = (performance.now() - startMs) / 1000;
  const count = perPair * records.length;
  const figure = toFigure({ count, cpuSeconds: own(), redisCpuSeconds: redis(), seconds });
  return { ...figure, longestScriptMs: await longestScript() };
}

/** Waits until each published link has a decision and its offset is committed. */
export const waitUntilCommitted = (bench: Pick<Bench, 'stores' | 'topicPrefix'>, measured?: Measured): Promise<void> =>
  withAdmin(bench.stores.kafka, async (admin) => {
    const topic = `${bench.topicPrefix}${TOPICS.identityLinks.name}`;
    const groupId = groupOf(bench, 'identity-linker');
    const ends = (await admin.fetchTopicOffsets(topic)).filter(({ high }) => Number(high) > 0);
    const isCommitted = async () => {
      const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
      const offsets = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
      return ends.every(({ partition, high }) => (offsets.get(partition) ?? 0) >= Number(high));
    };
    const endMs = performance.now() + LINKED_MAX_MS;
    while (!(await isCommitted())) {
      if (performance.now() > endMs) await waitFor('every link has a decision', isCommitted, { measured, maxMs: 0 });
      await delay(POLL_MS);
    }
  });

const watchRedis = (bench: Bench) => watchCpu(pidListeningOn(Number(new URL(bench.stores.redis).port)));

/** Floor: bare clients read the same facts, send one pipelined Redis command per fact and commit offsets. */
async function measureFloor(bench: Bench): Promise<LinkFigure> {
  const redis = watchRedis(bench);
  const { events, cpuSeconds, seconds } = await runFloor('floors/link', {
    ...bench.environment,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.identityLinks.name}`,
    BENCH_KEY: `${bench.topicPrefix}floor`,
    CONSUMER_GROUP: `${bench.topicPrefix}floor`,
    EVENTS: String(2 * LINKS),
  });
  return toFigure({ count: events, cpuSeconds, redisCpuSeconds: redis(), seconds });
}

function toFigure(spent: Record<'count' | 'cpuSeconds' | 'redisCpuSeconds' | 'seconds', number>) {
  return {
    longestScriptMs: 0,
    perCpuSecond: spent.count / spent.cpuSeconds,
    perSecond: spent.count / spent.seconds,
    redisCpuSecondsPerMillion: (spent.redisCpuSeconds / spent.count) * 1e6,
  };
}

function toRows(name: string, { own, floor, notes }: { own: LinkFigure; floor: LinkFigure; notes: string }): Row[] {
  const names = { case: `${LINKS} ${name}`, peer: 'floor: read, one HSET, commit' };
  const of = (key: keyof LinkFigure) => ({ ...names, value: own[key], peerValue: floor[key] });
  return [
    toRow({ ...of('perSecond'), unit: 'links per second', bars: [atLeast('value', 20_000, 50_000)], notes }),
    toRow({ ...of('perCpuSecond'), unit: 'links per CPU-second' }),
    toRow({ ...of('redisCpuSecondsPerMillion'), unit: 'Redis CPU-seconds per million links' }),
  ];
}

/** With holds, a link may cost at most twice as much and block Redis for at most 20 ms. */
function toHeldRows(name: string, { own, base, notes }: { own: LinkFigure; base: LinkFigure; notes: string }): Row[] {
  const what = `${LINKS} ${name}, ${HOLDS} holds of ${KEYS_PER_HOLD} identities`;
  const names = { case: what, peer: 'the same without holds' };
  const of = (key: keyof LinkFigure) => ({ ...names, value: own[key], peerValue: base[key] });
  const bars = [atLeast('ratio', 0.5)];
  return [
    toRow({ ...of('perSecond'), unit: 'links per second', bars, notes }),
    toRow({ ...of('perCpuSecond'), unit: 'links per CPU-second', bars }),
    toRow({ ...of('redisCpuSecondsPerMillion'), unit: 'Redis CPU-seconds per million links' }),
    toRow({ ...of('longestScriptMs'), unit: 'longest script, milliseconds', bars: [atMost('value', 20)] }),
  ];
}
