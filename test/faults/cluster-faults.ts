// One process of a whole cluster fails under load, and returns.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { overAllNodes } from '@playline/stores';
import { deadLetterTopicOf } from '@playline/stream';
import { createRandom, type Random } from '@playline/testkit/random';
import { findLines } from '../../infra/local/commands/logs.ts';
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
  forIds,
  HEALTHY_MAX_MS,
  openCluster,
  postMessages,
  postPerson,
  quoted,
  requestErasure,
  sum,
  toMessage,
} from './world/cluster.ts';
import { FAILURES, type Failure, fail, suspend, type Target } from './world/failure.ts';
import { BrokenGuarantee, type Effects, type FaultTrial, type SeedEnd, toSeconds } from './world/report.ts';
import { waitFor } from './world/wait.ts';

/** The services that messages and erasures pass through. */
const SERVICES = ['gateway', 'event-writer', 'identity-linker', 'eraser'] as const;

type Choose = (cluster: Cluster, random: Random) => Promise<Target>;

/** The parts that fail, and how to choose the process. */
const PARTS: Readonly<Record<string, Choose>> = {
  'the leader of most partitions': (cluster) => chooseBroker(cluster, 'leader'),
  'the controller of the brokers': (cluster) => chooseBroker(cluster, 'controller'),
  'a Redis primary whose replica is in sync': chooseRedisPrimary,
  'a Redis primary whose replica is behind': chooseWithReplicaBehind,
  'the home of ClickHouse': async () => ({ name: 'clickhouse' }),
  'a ClickHouse shard': async () => ({ name: 'clickhouse-2' }),
  'a gateway': async (_, random) => ({ name: nodeName('gateway', random.integer(1, 2)) }),
  'an event writer': chooseMember('event-writer', TOPICS.messages.name),
  'an identity linker': chooseMember('identity-linker', TOPICS.identityLinks.name),
  'an eraser': chooseMember('eraser', TOPICS.erasures.name),
};

export const CLUSTER_FAULTS = Object.keys(PARTS).flatMap((part) =>
  (Object.keys(FAILURES) as Failure[]).map((failure) => {
    const what = `${part} is ${FAILURES[failure]}`;
    // Cutting a process from the network requires root.
    const title = failure !== 'cut' && {
      title: `every acknowledged message has one row, and persons are erased, when ${what}`,
    };
    return { fault: 21, brokers: BROKERS, tried: `a whole cluster: ${what}`, part, failure, ...title };
  }),
);
type ClusterFault = (typeof CLUSTER_FAULTS)[number];

/** Returns the broker that leads most partitions and is not the controller, or the active controller. */
async function chooseBroker({ brokers }: Cluster, role: 'leader' | 'controller'): Promise<Target> {
  const controller = await brokers.controller();
  const leadersOf = async () => (await brokers.partitionsOf(TOPICS.messages.name)).map(({ leader }) => leader);
  const leaders = (await leadersOf()).filter((id) => id !== controller);
  const countOf = (id: number) => leaders.filter((leader) => leader === id).length;
  const id = role === 'controller' ? controller : leaders.toSorted((a, b) => countOf(b) - countOf(a))[0];
  if (id === undefined) throw new Error('the controller leads all partitions');
  return {
    name: nodeName('kafka', id),
    isReplaced: async () => {
      if (role === 'controller') return (await brokers.controller()) !== id;
      const current = await leadersOf();
      return current.length > 0 && current.every((leader) => ![id, -1].includes(leader));
    },
  };
}

type SlotRange = [first: number, last: number, ...nodes: [host: string, port: number][]];

function openRedisNodes({ stack }: Cluster) {
  const urls = redisNodeUrls(stack.file.redis);
  const indexOf = ([, port]: [string, number]) => urls.findIndex((url) => Number(new URL(url).port) === port);
  const readShards = async (node = 0) => {
    const ranges = (await queryRedisOnce({ url: urls[node]! }, (each) => each.call('CLUSTER', 'SLOTS'))) as SlotRange[];
    return ranges.map(([, , ...nodes]) => nodes.map(indexOf) as [primary: number, replica: number]);
  };
  return {
    urls,
    readShards,
    /** Returns the position in the stream of writes that a node has written or received. */
    readOffset: async (node: number) => {
      const info = String(await queryRedisOnce({ url: urls[node]! }, (each) => each.call('INFO', 'replication')));
      return Number(/^(?:slave_repl_offset|master_repl_offset):(\d+)/m.exec(info)?.[1]);
    },
    toTarget: (primary: number, observer: number): Target => ({
      name: nodeName('redis', primary + 1),
      isReplaced: async () => (await readShards(observer)).every(([id]) => id !== primary),
    }),
  };
}

async function chooseRedisPrimary(cluster: Cluster, random: Random): Promise<Target> {
  const { readShards, toTarget } = openRedisNodes(cluster);
  const [shard, other] = random.shuffle(await readShards());
  return toTarget(shard![0], other![0]);
}

/** Time in which the primary with most writes is found. */
const SAMPLE_WRITES_MS = 500;

/** Chooses the primary with most writes. Disconnects its suspended replica, which would read what its socket has received. */
async function chooseWithReplicaBehind(cluster: Cluster): Promise<Target> {
  const { urls, readShards, readOffset, toTarget } = openRedisNodes(cluster);
  const shards = await readShards();
  const before = await Promise.all(shards.map(([primary]) => readOffset(primary)));
  await delay(SAMPLE_WRITES_MS);
  const after = await Promise.all(shards.map(([primary]) => readOffset(primary)));
  const writesOf = (index: number) => after[index]! - before[index]!;
  const [busiest = 0, other = 0] = [...shards.keys()].sort((a, b) => writesOf(b) - writesOf(a));
  const [primary, replica] = shards[busiest]!;
  const prepare = async () => {
    const resume = await suspend(await cluster.pidOf(nodeName('redis', replica + 1)));
    try {
      await queryRedisOnce({ url: urls[primary]! }, (node) => node.call('CLIENT', 'KILL', 'TYPE', 'replica'));
      const received = await readOffset(primary);
      const written = await waitFor('the primary is written to', async () => {
        const offset = await readOffset(primary);
        return offset > received ? offset : null;
      });
      return async () => {
        resume();
        if ((await readOffset(replica)) >= written) throw new Error('the replica lacks no write');
      };
    } catch (error) {
      resume();
      throw error;
    }
  };
  return { ...toTarget(primary, shards[other]![0]), prepare };
}

/** A member of a group is replaced when the group has processed every record that was published before. */
function chooseMember(service: string, topic: string): Choose {
  return async ({ log }, random) => {
    let ends: ReadonlyMap<number, number> | null = null;
    return {
      name: nodeName(service, random.integer(1, 2)),
      isReplaced: async () => {
        ends ??= new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
        const committed = await log.committed(service, topic);
        return [...ends].every(([partition, end]) => end === 0 || (committed.get(partition) ?? 0) >= end);
      },
    };
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
function watchRows({ clickhouseUrls, query }: Cluster, partitions: number) {
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
      const count = () => [...advanced.values()].filter(({ at }) => at > from).length;
      await waitFor('each partition has new rows', () => count() === partitions);
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
  const countOf = (kind: string) => sum(differences.map((each) => (each.kind === kind ? each.count : 0)));
  throw new BrokenGuarantee(text, { lost: countOf('missing'), duplicated: countOf('doubled') });
}

/** Asserts that each message has one row in the view. */
async function assertOnce({ query }: Cluster, ids: readonly string[]): Promise<void> {
  const found = await forIds(ids, async (list) => {
    const sql = `SELECT count(), uniqExact(message_id) FROM events_exact WHERE message_id IN (${list})`;
    return (await query(sql)).split('\t').map(Number) as [number, number];
  });
  const [rows, messages] = [sum(found.map(([count]) => count)), sum(found.map(([, distinct]) => distinct))];
  const counts = { lost: ids.length - messages, duplicated: rows - messages };
  if (counts.lost + counts.duplicated > 0)
    throw new BrokenGuarantee(`${ids.length} messages have ${rows} rows, ${messages} messages with rows`, counts);
}

/**
 * Counts the rows that were stored on all nodes, including those that merges have removed. Counts of materialized views
 * would include blocks that ClickHouse ignored because of their token. A killed node loses log entries that are not written.
 */
async function countInserted({ clickhouseUrls, query }: Cluster): Promise<number> {
  const sql = `SELECT sum(rows) FROM system.part_log
    WHERE database = currentDatabase() AND table = 'events' AND event_type = 'NewPart' AND error = 0`;
  await flushLog({ clickhouseUrls, query });
  return sum((await Promise.all(clickhouseUrls.map((url) => query(sql, url)))).map(Number));
}

const flushLog = ({ clickhouseUrls, query }: Pick<Cluster, 'clickhouseUrls' | 'query'>) =>
  Promise.all(clickhouseUrls.map((url) => query('SYSTEM FLUSH LOGS part_log', url)));

/** Traffic before a fault. */
const LEAD_MS = { min: 1_000, max: 3_000 };
/** An erasure is requested up to three seconds before or after a process fails. */
const ERASURE_DELAY_MAX_MS = 3_000;

interface Erased {
  readonly erasureId: string;
  readonly ids: readonly string[];
}

async function tryFault(
  cluster: Cluster,
  { part, failure }: ClusterFault,
  { seed, onErased }: { readonly seed: number; readonly onErased: (erased: Erased) => void },
): Promise<SeedEnd> {
  const random = createRandom(seed);
  await cluster.awaitHealthy();
  const before = { published: await cluster.countPublished(), inserted: await countInserted(cluster) };
  const person = await postPerson(cluster);
  const partitions = (await cluster.brokers.partitionsOf(TOPICS.messages.name)).length;
  const [games, clients, rows] = [startGames(cluster, seed), startClients(cluster), watchRows(cluster, partitions)];
  try {
    await delay(random.integer(LEAD_MS.min, LEAD_MS.max));
    const target = await PARTS[part]!(cluster, random);
    const [failAfterMs, eraseAfterMs] = random.shuffle([0, random.integer(0, ERASURE_DELAY_MAX_MS)]) as [
      number,
      number,
    ];
    const erase = async () => {
      await delay(eraseAfterMs);
      // Rows that may not be stored yet when the erasure is requested.
      await person.play();
      onErased({ erasureId: await requestErasure(cluster, person.userId), ids: person.ids });
    };
    const erasing = erase();
    erasing.catch(() => {});
    await delay(failAfterMs);
    // A node that is killed would lose more of its log.
    await flushLog(cluster);
    const failedAt = performance.now();
    await fail(cluster, random, target, failure);
    await erasing;
    await cluster.awaitHealthy();
    const healthyMs = performance.now() - failedAt;
    await rows.awaitProgress();
    const [{ ids, longestMs, gapMs }, rowGapMs, results] = await Promise.all([
      clients.stop(),
      rows.stop(),
      games.stop(),
    ]);
    assertNoDifferences(results);
    await assertOnce(cluster, ids);
    const published = (await cluster.countPublished()) - before.published;
    const inserted = (await countInserted(cluster)) - before.inserted;
    assert.ok(inserted <= published, `${inserted} rows were inserted for ${published} records`);
    const accepted = sum(results.map(({ tally }) => tally.accepted));
    const effects: Effects = {
      failures: 1,
      'no acknowledgement for s': toSeconds(gapMs),
      'one message took s': toSeconds(longestMs),
      'no new row of a partition for s': toSeconds(rowGapMs),
      'every process served after s': toSeconds(healthyMs),
    };
    const sent = sum(results.map(({ tally }) => tally.messages - tally.rejected));
    return { effects, sent: sent + ids.length, acknowledged: accepted + ids.length, published, rows: inserted };
  } finally {
    await Promise.allSettled([games.stop(), clients.stop(), rows.stop()]);
  }
}

/** Compares all stores, and checks that every erasure has a receipt and that no erased row is left or was found again. */
async function checkAll(cluster: Cluster, erased: readonly Erased[]): Promise<void> {
  const { query, operate, stack } = cluster;
  const erasureIds = quoted(erased.map(({ erasureId }) => erasureId));
  const receipts = `SELECT uniqExact(erasure_id) FROM erasure_receipts WHERE erasure_id IN (${erasureIds})`;
  const hasReceipts = async () => erased.length === 0 || Number(await query(receipts)) === erased.length;
  await waitFor('every erasure has a receipt', hasReceipts, HEALTHY_MAX_MS);
  const counted = `SELECT count() FROM (
    SELECT minute_at FROM ${overAllNodes(stack.file.clickhouse).database}.counted_minutes
    WHERE minute_at < now() - INTERVAL 2 MINUTE GROUP BY minute_at HAVING max(stored_at) >= max(counted_at))`;
  await waitFor('the overview has counted every minute', async () => (await query(counted)) === '0', HEALTHY_MAX_MS);
  await waitFor('verify finds no differences', () => operate('verify'), HEALTHY_MAX_MS);
  for (const topic of Object.values(TOPICS))
    assert.equal(await cluster.countPublished(deadLetterTopicOf(topic.name)), 0, `dead letters of ${topic.name}`);
  await operate('erasures', 'scrub');
  for (const { erasureId } of erased.slice(-VERIFIED_MAX)) await operate('erasures', 'verify', erasureId);
  const ids = erased.flatMap((erasure) => erasure.ids);
  assert.equal(await countRows(cluster, ids), 0, 'rows of erased persons');
  const found = await findLines(stack.paths, ['eraser', 'eraser-2'], (line) => line.includes('survivors found'));
  assert.deepEqual(found, [], 'erased rows that a scrub has found');
}

/** Each runs a command. */
const VERIFIED_MAX = 5;

/** @param options.isChosen selects the `CLUSTER_FAULTS` to try */
export function createClusterTrials({ isChosen, ...options }: ClusterTrialsOptions): FaultTrial[] {
  let erased: Erased[] = [];
  return createTrialsOf(CLUSTER_FAULTS.filter(isChosen), {
    ...options,
    open: () => openCluster({ ...options, services: SERVICES }),
    tryFault: (cluster, fault, seed) =>
      tryFault(cluster, fault, { seed, onErased: (erasure) => void erased.push(erasure) }),
    checkAll: async (cluster) => {
      const checked = erased;
      erased = [];
      await checkAll(cluster, checked);
    },
  });
}
