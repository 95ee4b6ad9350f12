// A whole cluster under test: three brokers, six Redis nodes, two ClickHouse nodes and two processes of each service, as
// after `npm run up -- --cluster`.
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { type StackOptions, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import { sendStatement } from '@playline/stores';
import { openLogReader } from '@playline/stream/kafka';
import { runCommand } from '../../../infra/local/command.ts';
import { CHECKOUT, logFileOf } from '../../../infra/local/paths.ts';
import { environmentWithoutStores } from '../../../infra/local/services.ts';
import { publishableKeyHeaderOf, secretKeyHeaderOf } from '../../../infra/local/stack-file.ts';
import { readStatus } from '../../../infra/local/status.ts';
import { claimSupervision, releaseSupervision } from '../../../infra/local/supervisor.ts';
import { toEnvironmentId } from '../../../services/operator/src/keys/subcommands.ts';
import { sendRequest } from '../../simulate/delivery.ts';
import { MESSAGES_PATH } from '../../simulate/game/sender.ts';
import { BROKERS } from '../scenarios/leaders.ts';
import { openBrokers } from './brokers.ts';
import { createRow, type FaultTrial, type Row, runSeed, type SeedEnd } from './report.ts';
import { waitFor } from './wait.ts';

export type Cluster = Awaited<ReturnType<typeof openCluster>>;

/**
 * A session timeout shorter than the default of 10 s, so that a frozen member of a group is replaced before it returns, and
 * limits that the simulations do not reach.
 */
const SETTINGS = {
  SESSION_TIMEOUT_MS: '3000',
  RATE_LIMIT_MESSAGES_PER_S: '200000',
  RATE_LIMIT_BURST: '10000000',
  RATE_LIMIT_CALLS: '50000',
};
export const HEALTHY_MAX_MS = 180_000;
const STATEMENT_MAX_MS = 15_000;

export async function openCluster(options: Pick<StackOptions, 'services' | 'chain' | 'report'>) {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  await sweepStacks(stackPathsOf, parent);
  const folder = mkdtempSync(join(parent, 'faults-'));
  const directory = join(folder, '.playline');
  const stack = await startStack({ ...options, directory, cluster: true, settings: SETTINGS });
  claimSupervision(stack.paths);
  const log = openLogReader({ brokers: stack.file.kafka, clientId: 'faults' });
  const brokers = openBrokers(stack.file.kafka);
  const urls = stack.file.clickhouse.cluster?.urls ?? [];
  const environmentId = toEnvironmentId('demo', 'production');
  /** Runs a query on the home, or on one node, whose tables have only its own rows. */
  const query = async (sql: string, url = stack.file.clickhouse.url, deadlineMs = STATEMENT_MAX_MS) => {
    const response = await sendStatement({ ...stack.file.clickhouse, url }, { body: sql, deadlineMs });
    return (await response.text()).trim();
  };
  const run = (main: string, args: readonly string[]) =>
    runCommand(process.execPath, [join(CHECKOUT, main), ...args], {
      folder,
      env: environmentWithoutStores(),
      logFile: logFileOf(stack.paths, 'operator'),
    });
  const findFault = async () => {
    const states = await readStatus(stack.paths, { includeLag: false });
    if (states === null) return 'the stack has no status';
    const faults = states.flatMap(({ name, state, reason }) => (state === 'serves' ? [] : [`${name}: ${reason}`]));
    const partitions = await brokers.partitionsOf(TOPICS.messages.name);
    if (partitions.length === 0) return 'the topic has no partitions';
    const outOfSync = partitions.filter(({ leader, inSync }) => leader < 1 || inSync.length < BROKERS);
    return [...faults, ...outOfSync.map(({ partition }) => `partition ${partition} lacks a replica`)].join('\n');
  };
  return {
    stack,
    brokers,
    environmentId,
    keys: stack.file.keys?.production ?? { publishable: '', secret: '' },
    gateways: [stack.file.gateway ?? '', stack.file.others?.['gateway-2'] ?? ''],
    clickhouseUrls: urls,
    query,
    pidOf: (name: string) => waitFor(`${name} has a process`, () => stack.file.processes[name] ?? null),
    awaitHealthy: () =>
      waitFor(
        'every process serves',
        async () => {
          const fault = await findFault();
          if (fault !== '') throw new Error(fault);
          return true;
        },
        HEALTHY_MAX_MS,
      ),
    log,
    /** Returns the number of records published to a topic so far. */
    countPublished: async (topic: string = TOPICS.messages.name) =>
      (await log.bounds(topic)).reduce((sum, { end }) => sum + end, 0),
    operate: (...args: readonly string[]) => run('services/operator/src/main.ts', args),
    simulate: (...args: readonly string[]) => run('test/simulate/main.ts', args),
    close: async () => {
      await Promise.all([log.close(), brokers.close()]);
      releaseSupervision(stack.paths);
      await stack.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface ClusterTrialsOptions {
  readonly isChosen: (fault: Pick<Row, 'fault' | 'tried'>) => boolean;
  readonly seeds: number;
  readonly report?: (line: string) => void;
}

interface TrialsOf<F> {
  readonly seeds: number;
  readonly open: () => Promise<Cluster>;
  readonly tryFault: (cluster: Cluster, fault: F, seed: number) => Promise<SeedEnd>;
  /** Called before the cluster is closed. */
  readonly checkAll?: (cluster: Cluster) => Promise<void>;
}

/**
 * Creates a trial for each fault. All trials of a seed run in one cluster, which is opened on first use, and closed after
 * the last fault.
 */
export function createTrialsOf<F extends Pick<Row, 'fault' | 'tried'> & { readonly title?: string }>(
  faults: readonly F[],
  { seeds, open, tryFault, checkAll = async () => {} }: TrialsOf<F>,
): FaultTrial[] {
  let opening: Promise<Cluster> | null = null;
  let isClosed = false;
  const openOnce = () => {
    if (isClosed) throw new Error('the trials are closed');
    opening ??= open().catch((error) => {
      opening = null;
      throw error;
    });
    return opening;
  };
  const checkAndClose = async () => {
    const cluster = await opening;
    if (cluster === null) return;
    opening = null;
    try {
      await checkAll(cluster);
    } finally {
      await cluster.close();
    }
  };
  return faults.map((fault) => {
    const row = createRow(fault, seeds);
    const trySeed = (seed: number) =>
      runSeed(row, seed, async () => {
        try {
          return await tryFault(await openOnce(), fault, seed);
        } finally {
          if (fault === faults.at(-1) && !isClosed) await checkAndClose();
        }
      });
    const close = async () => {
      isClosed = true;
      await checkAndClose();
    };
    return { row, title: fault.title, trySeed, close };
  });
}

export type Message = Record<string, unknown> & { readonly messageId: string };

export function toMessage(fields: Record<string, unknown>): Message {
  const eventTimestamp = new Date().toISOString();
  return { type: 'track', messageId: randomUUID(), eventTimestamp, eventName: 'level_started', ...fields };
}

/** A client uses the other gateway after this time, as a load balancer would. */
const RESPONSE_MAX_MS = 5_000;
const RETRY_MS = 100;
const SEND_MAX_MS = 120_000;
let sent = 0;

/**
 * Sends a request to the gateways in turn until one responds with success.
 * @returns the headers of the response @throws Error after two minutes
 */
async function send(
  { gateways }: Cluster,
  request: Omit<Parameters<typeof sendRequest>[1], 'abortAfterMs'>,
): Promise<Record<string, unknown>> {
  const endMs = performance.now() + SEND_MAX_MS;
  for (let attempt = sent++; performance.now() < endMs; attempt++) {
    const gateway = gateways[attempt % gateways.length]!;
    const response = await sendRequest(gateway, { ...request, abortAfterMs: RESPONSE_MAX_MS }).catch(() => null);
    if (response !== null && response.status < 300) return response.headers;
    if (response !== null && response.status < 500 && response.status !== 429)
      throw new Error(`status ${response.status}: ${response.text}`);
    await delay(RETRY_MS);
  }
  throw new Error(`no gateway has accepted a request within ${SEND_MAX_MS} ms`);
}

export const postMessages = (cluster: Cluster, messages: readonly Message[]) =>
  send(cluster, {
    method: 'POST',
    path: MESSAGES_PATH,
    headers: {
      'content-type': 'application/json',
      [publishableKeyHeaderOf(cluster.stack.file)]: cluster.keys.publishable,
    },
    body: Buffer.from(JSON.stringify({ messages })),
  });

export const quoted = (ids: readonly string[]) => ids.map((id) => `'${id}'`).join();

/** Limits the length of a query. ClickHouse accepts 262,144 characters. */
const QUERY_IDS = 2_000;

/** Runs a query for each part of a list of ids. */
export async function forIds<T>(ids: readonly string[], read: (list: string) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let first = 0; first < ids.length; first += QUERY_IDS)
    results.push(await read(quoted(ids.slice(first, first + QUERY_IDS))));
  return results;
}

export const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** Counts rows of messages on all ClickHouse nodes. */
export async function countRows({ clickhouseUrls, query }: Cluster, ids: readonly string[]): Promise<number> {
  const countIn = async (list: string) => {
    const sql = `SELECT count() FROM events WHERE message_id IN (${list})`;
    return sum((await Promise.all(clickhouseUrls.map((url) => query(sql, url)))).map(Number));
  };
  return sum(await forIds(ids, countIn));
}

const DEVICES = 8;

/** Posts events of a person with several devices, whose rows are on both ClickHouse nodes. */
export async function postPerson(cluster: Cluster) {
  const userId = randomUUID();
  const devices = Array.from({ length: DEVICES }, () => randomUUID());
  const ids: string[] = [];
  const play = async () => {
    const messages = devices.map((anonymousId) => toMessage({ anonymousId }));
    await postMessages(cluster, messages);
    ids.push(...messages.map(({ messageId }) => messageId));
  };
  await play();
  const links = devices.map((anonymousId) =>
    toMessage({ type: 'identify', eventName: undefined, anonymousId, userId, identityType: 'steam' }),
  );
  await postMessages(cluster, links);
  ids.push(...links.map(({ messageId }) => messageId));
  const sql = `SELECT count(), uniqExact(person_key) FROM events_identified WHERE message_id IN (${quoted(ids)})`;
  await waitFor('the devices belong to one person', async () => (await cluster.query(sql)) === `${2 * DEVICES}\t1`);
  return { userId, ids, play };
}

/** Requests the erasure of a person. @returns the id of the erasure */
export async function requestErasure(cluster: Cluster, userId: string): Promise<string> {
  const headers = { [secretKeyHeaderOf(cluster.stack.file)]: cluster.keys.secret };
  const path = `/v1/audience/data?userId=${userId}`;
  const response = await send(cluster, { method: 'DELETE', path, headers, body: Buffer.alloc(0) });
  return String(response['x-erasure-id']);
}
