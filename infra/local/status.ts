// Determines the state of all processes, for `status`, `doctor` and `up`.
import { readFileSync } from 'node:fs';
import { createStoreFetch, sendStatement, waitAtMost } from '@playline/stores';
import { Kafka, logLevel } from 'kafkajs';
import { patchKafkaTimer } from '../kafka/timer.ts';
import { assertChain } from './chain.ts';
import { type Condition, readConditions } from './condition.ts';
import { readDegraded } from './http-probe.ts';
import { acceptsRecords } from './kafka.ts';
import { lastErrorOf } from './logs.ts';
import { parseNodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { ageOf } from './process-mark.ts';
import { toReason } from './readiness-watch.ts';
import { findServerFault } from './redis.ts';
import { findNodeFault, redisNodeUrls } from './redis-cluster.ts';
import { silenceRemedy } from './report.ts';
import { SERVICES, type ServiceEntry } from './services.ts';
import { readStackFile, type StackFile } from './stack-file.ts';
import { supervisorStartedAt } from './supervisor.ts';

/** Longer than a request timeout, because a probe may send several requests. */
const PROBE_MAX_MS = 10_000;

export interface ProcessStatus {
  readonly name: string;
  readonly state: 'serves' | 'degraded' | 'starting' | 'does not serve' | 'down';
  readonly pid: number | null;
  readonly ageSeconds: number | null;
  readonly restarts: number;
  /** Why the process is not ready or degraded; null if it is ready. */
  readonly reason: string | null;
  /** How to restart a process that has not been ready for a minute; otherwise null. */
  readonly fix: string | null;
  /** Number of unread records, shown for the first process of a service; null if it is unknown or reads no topic. */
  readonly lag: number | null;
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

async function probeWithin(name: string, file: StackFile): Promise<ProbeResult> {
  try {
    return await waitAtMost(PROBE_MAX_MS, probe(name, file), () => {
      throw new Error(`it has not responded for ${PROBE_MAX_MS / 1000} s`);
    });
  } catch (error) {
    return { fault: toReason(error), degraded: null };
  }
}

function stateOf({ pid, state }: Condition, { fault, degraded }: ProbeResult): ProcessStatus['state'] {
  if (pid === null) return 'down';
  if (fault !== null) return state === 'starting' ? 'starting' : 'does not serve';
  return degraded === null ? 'serves' : 'degraded';
}

function reasonOf({ pid, reason, restarts }: Condition, { fault, degraded }: ProbeResult): string | null {
  if (pid === null) return `exited (${reason ?? 'unknown reason'}); restarts: ${restarts}`;
  return fault ?? degraded;
}

/**
 * Probes every process of this checkout's stack.
 * @param options.includeLag false to omit `lag`, which saves a dozen requests
 * @returns null if no supervisor is running
 */
export async function readStatus(paths: StackPaths, { includeLag = true } = {}): Promise<ProcessStatus[] | null> {
  const conditions = readConditions(paths);
  if (conditions === null) return null;
  const file = readStackFile(paths);
  const startedAt = supervisorStartedAt(paths);
  const empty = new Map<string, number>();
  const reading = file === null || !includeLag ? Promise.resolve(empty) : readLag(file).catch(() => empty);
  const lags = await waitAtMost(PROBE_MAX_MS, reading, () => empty);
  const probed = conditions.map(async (condition): Promise<ProcessStatus> => {
    const { name, pid, restarts } = condition;
    // Until the start is complete, there are no addresses, so the supervisor's results are used.
    const hasAddress = file !== null && pid !== null;
    const found = hasAddress ? await probeWithin(name, file) : { fault: condition.reason, degraded: null };
    return {
      name,
      pid,
      restarts,
      state: stateOf(condition, found),
      ageSeconds: pid === null ? null : ageOf(pid),
      reason: reasonOf(condition, found),
      fix: found.fault !== null && condition.isSilent && pid !== null ? silenceRemedy(name, pid) : null,
      lag: lags.get(name) ?? null,
      lastError: latest(condition.lastError, lastErrorOf(logFileOf(paths, name), startedAt)),
    };
  });
  return Promise.all(probed);
}

type LastError = ProcessStatus['lastError'];

/** Returns the later error. ISO 8601 timestamps can be compared as strings. */
function latest(one: LastError, other: LastError): LastError {
  if (one === null || other === null) return one ?? other;
  return one.at >= other.at ? one : other;
}

/** The overall state of a stack, reported by `up`, `doctor` and `status`. */
export interface Verdict {
  readonly isWell: boolean;
  readonly sentence: string;
  /** Text after the sentence for commands that do not print the process table; may be ''. */
  readonly hint: string;
}

/** @param orphans names of running processes of a dead supervisor; used only if `statuses` is null */
export function toVerdict(statuses: readonly ProcessStatus[] | null, orphans: readonly string[] = []): Verdict {
  const unhealthy = (sentence: string, hint = ''): Verdict => ({ isWell: false, sentence, hint });
  if (statuses === null && orphans.length > 0)
    return unhealthy(
      `the supervisor is dead, but processes are still running: ${orphans.join(', ')}; \`npm run up\` restarts the stack`,
    );
  if (statuses === null) return unhealthy('the stack is not running; start it with `npm run up`');
  if (statuses.length === 0) return unhealthy('the stack is starting');
  const impaired = statuses.filter(({ state }) => state !== 'serves');
  if (impaired.length === 0) return { isWell: true, sentence: `all ${statuses.length} processes serve`, hint: '' };
  const names = impaired.map(({ name, state }) => `${name} ${STATE_LABELS[state]}`).join(', ');
  return unhealthy(`${impaired.length} of ${statuses.length} processes: ${names}`, ' (details: `npm run status`)');
}

const STATE_LABELS: Record<ProcessStatus['state'], string> = {
  serves: 'serves',
  degraded: 'is degraded',
  starting: 'is starting',
  'does not serve': 'does not serve',
  down: 'is down',
};

function toAge(seconds: number | null): string {
  if (seconds === null) return '-';
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** Formats a table with one line per process, followed by the reason and the last error. */
export function toLines(statuses: readonly ProcessStatus[]): string[] {
  const head = ['process', 'state', 'age', 'restarts', 'lag', 'pid'];
  const rows = statuses.map(({ name, state, ageSeconds, restarts, lag, pid }) => [
    ...[name, state, toAge(ageSeconds), String(restarts), String(lag ?? '-'), String(pid ?? '-')],
  ]);
  const widths = head.map((title, at) =>
    rows.map((cells) => cells[at]!.length).reduce((most, each) => Math.max(most, each), title.length),
  );
  const padded = (cells: readonly string[]) => cells.map((cell, at) => cell.padEnd(widths[at]!));
  const line = (cells: readonly string[]) => padded(cells).join('  ').trimEnd();
  return [
    line(head),
    ...statuses.flatMap(({ reason, fix, lastError }, at) => [
      line(rows[at]!),
      ...(reason === null ? [] : [`    why: ${reason}`]),
      ...(fix === null ? [] : [`    fix: ${fix}`]),
      ...(lastError === null || lastError.what === reason
        ? []
        : [`    last error, ${lastError.at}: ${lastError.what}`]),
    ]),
  ];
}

/** Longer than a slow response, but short enough for an operator who is waiting. */
const RESPONSE_MAX_MS = 5_000;

interface ProbeResult {
  /** Why the process is not ready; null if it is ready. */
  readonly fault: string | null;
  /** Why a ready process is degraded; null if it is fully functional. */
  readonly degraded: string | null;
}

const HEALTHY: ProbeResult = { fault: null, degraded: null };

async function probeRegistry(url: string): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.timeout(RESPONSE_MAX_MS) });
  const text = await response.text();
  if (!response.ok) throw new Error(`it responds with status ${response.status}: ${text.slice(0, 200).trimEnd()}`);
}

/** @returns why a node is impaired, or null */
async function probeRedis({ redis, redisCells }: StackFile, node: { id: number; ca: string | null }) {
  if (redisCells === undefined) return findServerFault(redis, node.ca);
  return findNodeFault(redisNodeUrls(redis)[node.id - 1] ?? '');
}

async function probeClickHouse({ clickhouse }: StackFile, { id, ca }: { id: number; ca: string | null }) {
  const send = createStoreFetch(ca === null ? {} : { tls: { ca } });
  // Uses the database `default`, because ClickHouse is considered ready even without Playline's tables.
  const url = clickhouse.cluster?.urls[id - 1] ?? clickhouse.url;
  const account = { ...clickhouse, url, database: 'default', fetch: send };
  await (await sendStatement(account, { body: 'SELECT 1', deadlineMs: RESPONSE_MAX_MS })).text();
}

/** Sends a request with a login, because an open port does not prove that a store works. */
async function probeStore(name: string, file: StackFile): Promise<ProbeResult> {
  const caFile = file.security?.caFile;
  const ca = caFile === undefined ? null : readFileSync(caFile, 'utf8');
  const { kind, id } = parseNodeName(name);
  if (kind === 'redis') return { fault: null, degraded: await probeRedis(file, { id, ca }) };
  if (kind === 'clickhouse') await probeClickHouse(file, { id, ca });
  else if (kind === 'registry') await probeRegistry(`${file.registry}/subjects`);
  else if (kind === 'chain' && file.chain !== undefined) await assertChain(file.chain.rpc);
  else if (kind === 'kafka' && !(await acceptsRecords(file.kafka[id - 1] ?? '')))
    throw new Error('it is not a member of the cluster');
  return HEALTHY;
}

/** @throws Error with the reason if the process is not ready */
async function probe(name: string, file: StackFile): Promise<ProbeResult> {
  const admin = file.admin?.[name];
  return admin === undefined ? probeStore(name, file) : { fault: null, degraded: await readDegraded(admin) };
}

/**
 * Counts uncommitted records by service. The lag is read from Kafka, because it matters most when a service does not
 * respond. For a partition without a commit, all records are counted.
 */
async function readLag(file: StackFile): Promise<Map<string, number>> {
  patchKafkaTimer();
  const client = new Kafka({
    clientId: 'playline-status',
    brokers: [...file.kafka],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: RESPONSE_MAX_MS,
    // The first request to a coordinator may fail without a connection.
    retry: { retries: 3, initialRetryTime: 50 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const lags = new Map<string, number>();
    const groups = (SERVICES as readonly ServiceEntry[]).flatMap(({ name, reads = [], audits = [] }) => [
      { name, groupId: name, reads },
      { name, groupId: `${name}-audit`, reads: audits },
    ]);
    for (const { name, groupId, reads } of groups) {
      const topics = reads.map((topic) => (file.settings?.TOPIC_PREFIX ?? '') + topic.name);
      if (topics.length === 0) continue;
      const committed = await admin.fetchOffsets({ groupId, topics });
      const ends = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)));
      lags.set(name, (lags.get(name) ?? 0) + sumLag(topics, { committed, ends }));
    }
    return lags;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

type Committed = { topic: string; partitions: { partition: number; offset: string }[] }[];
type Ends = { partition: number; low: string; high: string }[][];

function sumLag(topics: readonly string[], { committed, ends }: { committed: Committed; ends: Ends }): number {
  let lag = 0;
  for (const [at, topic] of topics.entries()) {
    const partitions = committed.find((each) => each.topic === topic)?.partitions ?? [];
    for (const { partition, low, high } of ends[at] ?? []) {
      const offset = Number(partitions.find((each) => each.partition === partition)?.offset ?? -1);
      lag += Math.max(0, Number(high) - (offset < 0 ? Number(low) : offset));
    }
  }
  return lag;
}
