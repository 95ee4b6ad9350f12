// One process of a whole cluster fails under load, and returns.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { overAllNodes } from '@playline/stores';
import { createRandom, type Random } from '@playline/testkit/random';
import { nodeName } from '../../infra/local/node-names.ts';
import { queryRedisOnce } from '../../infra/local/redis.ts';
import { redisNodeUrls } from '../../infra/local/redis-cluster.ts';
import { publishableKeyHeaderOf } from '../../infra/local/stack-file.ts';
import { simulate } from '../simulate/game/simulation.ts';
import { BROKERS } from './scenarios/leaders.ts';
import {
  type Cluster,
  type ClusterTrialsOptions,
  countRows,
  createTrialsOf,
  HEALTHY_MAX_MS,
  openCluster,
  postMessages,
  postPerson,
  quoted,
  requestErasure,
  toMessage,
} from './world/cluster.ts';
import { FAILURES, type Failure, fail, type Target } from './world/failure.ts';
import { BrokenGuarantee, type Effects, type FaultTrial, type SeedEnd, toSeconds } from './world/report.ts';
import { waitFor } from './world/wait.ts';

/** The services that messages and erasures pass through. */
const SERVICES = ['gateway', 'event-writer', 'identity-linker', 'eraser'] as const;

/** The parts that fail, and how to choose the process. */
const PARTS: Readonly<Record<string, (cluster: Cluster, random: Random) => Promise<Target>>> = {
  'leader of most partitions': (cluster) => chooseBroker(cluster, 'leader'),
  'controller of the brokers': (cluster) => chooseBroker(cluster, 'controller'),
  'Redis primary, its replica in sync,': async (cluster, random) => {
    const { replica: _, ...target } = await chooseRedisPrimary(cluster, random);
    return target;
  },
  'Redis primary, its replica behind,': chooseRedisPrimary,
  'ClickHouse home': async () => ({ name: 'clickhouse' }),
  'ClickHouse shard': async () => ({ name: 'clickhouse-2' }),
  ...Object.fromEntries(
    SERVICES.map((service) => [
      service,
      async (_: Cluster, random: Random) => ({ name: nodeName(service, random.integer(1, 2)) }),
    ]),
  ),
};

/** Tests try what does not require root. */
export const CLUSTER_FAULTS = Object.keys(PARTS).flatMap((part) =>
  (Object.keys(FAILURES) as Failure[]).map((failure) => {
    const what = `${part} ${FAILURES[failure]}`;
    const title = `every acknowledged message has one row, and erased persons stay erased: ${what}`;
    return {
      fault: 21,
      brokers: BROKERS,
      tried: `a whole cluster: ${what}`,
      part,
      failure,
      ...(failure !== 'cut' && { title }),
    };
  }),
);
type ClusterFault = (typeof CLUSTER_FAULTS)[number];

/** Returns the broker that leads most partitions and is not the controller, or the active controller. */
async function chooseBroker({ brokers }: Cluster, role: 'leader' | 'controller'): Promise<Target> {
  const controller = await brokers.controller();
  const leadersOf = async () => (await brokers.partitionsOf(TOPICS.messages.name)).map(({ leader }) => leader);
  const leaders = (await leadersOf()).filter((id) => id !== controller);
  const countOf = (id: number) => leaders.filter((leader) => leader === id).length;
  const id = role === 'controller' ? controller : (leaders.toSorted((a, b) => countOf(b) - countOf(a))[0] ?? 0);
  return {
    name: nodeName('kafka', id),
    isReplaced: async () => {
      if (role === 'controller') return (await brokers.controller()) !== id;
      return (await leadersOf()).every((leader) => ![id, -1].includes(leader));
    },
  };
}

type SlotRange = [first: number, last: number, ...nodes: [host: string, port: number][]];

async function chooseRedisPrimary({ stack }: Cluster, random: Random): Promise<Required<Target>> {
  const urls = redisNodeUrls(stack.file.redis);
  const indexOf = ([, port]: [string, number]) => urls.findIndex((url) => Number(new URL(url).port) === port);
  const readNodes = async (url = urls[0]!) => {
    const ranges = (await queryRedisOnce({ url }, (node) => node.call('CLUSTER', 'SLOTS'))) as SlotRange[];
    return ranges.map(([, , ...nodes]) => nodes.map(indexOf) as [primary: number, replica: number]);
  };
  const [[primary, replica], [observer]] = random.shuffle(await readNodes()) as [[number, number], [number, number]];
  return {
    name: nodeName('redis', primary + 1),
    replica: nodeName('redis', replica + 1),
    isReplaced: async () => (await readNodes(urls[observer])).every(([id]) => id !== primary),
  };
}

const CLIENTS = 6;
const PAUSE_MS = 40;

/** Posts messages one after another, each until it is acknowledged, and measures how long that takes. */
function startClients(cluster: Cluster) {
  const ids: string[] = [];
  const acknowledgedAt: number[] = [];
  let isStopped = false;
  let longestMs = 0;
  const post = async () => {
    const anonymousId = randomUUID();
    while (!isStopped) {
      const message = toMessage({ anonymousId });
      const startedAt = performance.now();
      await postMessages(cluster, [message]);
      ids.push(message.messageId);
      acknowledgedAt.push(performance.now());
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      await delay(PAUSE_MS);
    }
  };
  const posting = Promise.all(Array.from({ length: CLIENTS }, post));
  posting.catch(() => {});
  return {
    stop: async () => {
      isStopped = true;
      await posting;
      const gaps = acknowledgedAt.map((at, index) => at - (acknowledgedAt[index - 1] ?? at));
      return { ids, longestMs, gapMs: gaps.reduce((longest, gap) => Math.max(longest, gap), 0) };
    },
  };
}

const SAMPLE_MS = 250;
const SAMPLE_MAX_MS = 2_000;

/** Measures the longest time without a new row in any partition that receives messages. */
function watchRows({ clickhouseUrls, query }: Cluster) {
  const advanced = new Map<string, { offset: number; at: number }>();
  const since = `now64(3) - INTERVAL 2 MINUTE`;
  const sql = `SELECT kafka_partition, max(kafka_offset) FROM events WHERE received_at > ${since}
    GROUP BY kafka_partition`;
  let isStopped = false;
  let longestMs = 0;
  const watch = async (url: string) => {
    while (!isStopped) {
      const text = await query(sql, url, SAMPLE_MAX_MS).catch(() => '');
      const at = performance.now();
      for (const [partition = '', offset] of text.split('\n').map((line) => line.split('\t'))) {
        const before = advanced.get(partition);
        if (partition === '' || Number(offset) <= (before?.offset ?? -1)) continue;
        if (before !== undefined) longestMs = Math.max(longestMs, at - before.at);
        advanced.set(partition, { offset: Number(offset), at });
      }
      await delay(SAMPLE_MS);
    }
  };
  const watching = Promise.all(clickhouseUrls.map(watch));
  return {
    awaitProgress: async () => {
      const from = performance.now();
      await waitFor('each partition has new rows', () => [...advanced.values()].every(({ at }) => at > from));
    },
    stop: async () => {
      isStopped = true;
      await watching;
      return longestMs;
    },
  };
}

/** Messages per second that each gateway receives from the simulated game. */
const RATE = 200;
const PLAYERS = 100;
const SIMULATION_MAX_MS = 600_000;
const SETTLE_IDLE_MAX_MS = 90_000;

/** Simulates a game against each gateway, and compares rows and persons with a model when it is stopped. */
function startGames(cluster: Cluster, seed: number) {
  const stop = new AbortController();
  const games = cluster.gateways.map((gateway, index) =>
    simulate({
      gateway,
      seed: 2 * seed + index,
      clickhouse: cluster.stack.file.clickhouse,
      environmentId: cluster.environmentId,
      keyHeader: publishableKeyHeaderOf(cluster.stack.file),
      publishableKey: cluster.keys.publishable,
      secretKey: cluster.keys.secret,
      players: PLAYERS,
      rate: RATE,
      brokenFraction: 0.03,
      durationMaxMs: SIMULATION_MAX_MS,
      messagesMax: Number.POSITIVE_INFINITY,
      settleIdleMaxMs: SETTLE_IDLE_MAX_MS,
      stop: stop.signal,
      onProgress: () => {},
    }),
  );
  for (const game of games) game.catch(() => {});
  return {
    stop: async () => {
      stop.abort();
      return await Promise.all(games);
    },
  };
}

type GameResults = Awaited<ReturnType<ReturnType<typeof startGames>['stop']>>;

function assertNoDifferences(results: GameResults): void {
  const differences = results.flatMap((result) => result.differences);
  if (differences.length === 0) return;
  const text = differences.map(({ kind, count, first }) => `${count} ${kind}: ${first.join(' ')}`).join('; ');
  const countOf = (kind: string) => differences.reduce((sum, each) => sum + (each.kind === kind ? each.count : 0), 0);
  throw new BrokenGuarantee(text, { lost: countOf('missing'), duplicated: countOf('doubled') });
}

/** Asserts that each message has one row in the view, and that each raw row has a distinct offset. */
async function assertOnce(cluster: Cluster, ids: readonly string[], since: string): Promise<number> {
  const exact = `SELECT count(), uniqExact(message_id) FROM events_exact WHERE message_id IN (${quoted(ids)})`;
  const [rows, messages] = (await cluster.query(exact)).split('\t').map(Number) as [number, number];
  const counts = { lost: ids.length - messages, duplicated: rows - messages };
  if (counts.lost + counts.duplicated > 0)
    throw new BrokenGuarantee(`${ids.length} messages have ${rows} rows, ${messages} messages with rows`, counts);
  const events = `${overAllNodes(cluster.stack.file.clickhouse).database}.events`;
  const raw = `SELECT count(), uniqExact(kafka_partition, kafka_offset) FROM ${events} WHERE received_at >= '${since}'`;
  const [all, distinct] = (await cluster.query(raw)).split('\t').map(Number) as [number, number];
  assert.equal(all, distinct, 'raw rows have distinct offsets');
  return all;
}

/** Traffic before a fault. */
const LEAD_MS = { min: 1_000, max: 3_000 };
const ERASURE_DELAY_MAX_MS = 3_000;

async function tryFault(cluster: Cluster, { part, failure }: ClusterFault, seed: number): Promise<SeedEnd & Erased> {
  const random = createRandom(seed);
  await cluster.awaitHealthy();
  const publishedBefore = await cluster.countPublished();
  const since = await cluster.query('SELECT now64(3)');
  const person = await postPerson(cluster);
  const [games, clients, rows] = [startGames(cluster, seed), startClients(cluster), watchRows(cluster)];
  try {
    await delay(random.integer(LEAD_MS.min, LEAD_MS.max));
    const target = await PARTS[part]!(cluster, random);
    const failedAt = performance.now();
    const failing = fail(cluster, random, target, failure);
    const erasing = (async () => {
      await delay(random.integer(0, ERASURE_DELAY_MAX_MS));
      // Rows that are not yet stored when the erasure is requested.
      await person.play();
      return requestErasure(cluster, person.userId);
    })();
    const [erasureId] = await Promise.all([erasing, failing]);
    await cluster.awaitHealthy();
    const healthyMs = performance.now() - failedAt;
    await rows.awaitProgress();
    const [{ ids, longestMs, gapMs }, rowGapMs, results] = await Promise.all([
      clients.stop(),
      rows.stop(),
      games.stop(),
    ]);
    assertNoDifferences(results);
    const stored = await assertOnce(cluster, ids, since);
    const accepted = results.reduce((sum, { tally }) => sum + tally.accepted, 0);
    const sent = results.reduce((sum, { tally }) => sum + tally.messages - tally.rejected, 0);
    const effects: Effects = {
      [`${part} ${FAILURES[failure]}`]: 1,
      'no acknowledgement for s': toSeconds(gapMs),
      'one message took s': toSeconds(longestMs),
      'no new row of a partition for s': toSeconds(rowGapMs),
      'every process served after s': toSeconds(healthyMs),
    };
    return {
      effects,
      sent: sent + ids.length,
      acknowledged: accepted + ids.length,
      published: (await cluster.countPublished()) - publishedBefore,
      rows: stored,
      erased: { erasureId, ids: person.ids },
    };
  } finally {
    await Promise.allSettled([games.stop(), clients.stop(), rows.stop()]);
  }
}

interface Erased {
  readonly erased: { readonly erasureId: string; readonly ids: readonly string[] };
}

/** @param options.isChosen selects the `CLUSTER_FAULTS` to try */
export function createClusterTrials({ isChosen, ...options }: ClusterTrialsOptions): FaultTrial[] {
  const erased: Erased['erased'][] = [];
  const faults = CLUSTER_FAULTS.filter(isChosen);
  /** Compares all stores, and checks the receipts and rows of the persons that the trials erased. */
  const checkAll = async (cluster: Cluster) => {
    const erasureIds = quoted(erased.map(({ erasureId }) => erasureId));
    const receipts = `SELECT uniqExact(erasure_id) FROM erasure_receipts WHERE erasure_id IN (${erasureIds})`;
    const hasReceipts = async () => Number(await cluster.query(receipts)) === erased.length;
    await waitFor('every erasure has a receipt', hasReceipts, HEALTHY_MAX_MS);
    await waitFor('verify finds no differences', () => cluster.operate('verify'), HEALTHY_MAX_MS);
    await cluster.operate('erasures', 'scrub');
    await cluster.operate('erasures', 'verify', erased.at(-1)?.erasureId ?? '');
    const ids = erased.flatMap((erasure) => erasure.ids);
    assert.equal(await countRows(cluster, ids), 0, 'rows of erased persons');
  };
  const open = () => openCluster({ ...options, services: SERVICES });
  return createTrialsOf(faults, { ...options, open }, async (cluster, fault, seed) => {
    const { erased: erasure, ...end } = await tryFault(cluster, fault, seed);
    erased.push(erasure);
    if (fault === faults.at(-1)) await checkAll(cluster);
    return end;
  });
}
