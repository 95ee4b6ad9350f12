// The state of every process, for `status`, `doctor` and `up`.
import { readFileSync } from 'node:fs';
import { createStoreFetch, sendStatement, waitAtMost } from '@playline/stores';
import { Kafka, logLevel } from 'kafkajs';
import { patchKafkaTimer } from '../kafka/timer.ts';
import { assertChain } from './chain.ts';
import { type Condition, readConditions } from './condition.ts';
import { readDegraded } from './http-probe.ts';
import { acceptsRecords } from './kafka.ts';
import { lastErrorOf } from './logs.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { ageOf } from './process-mark.ts';
import { sentenceOf } from './readiness-watch.ts';
import { findWriteRefusal } from './redis.ts';
import { silenceRemedy } from './report.ts';
import { SERVICES, type ServiceEntry } from './services.ts';
import { readStackFile, type StackFile } from './stack-file.ts';
import { supervisedSinceAt } from './supervisor.ts';

/** Longer than a single request; a probe may send several. */
const PROBE_MAX_MS = 10_000;

export interface ProcessStatus {
  readonly name: string;
  readonly state: 'serves' | 'degraded' | 'starting' | 'does not serve' | 'down';
  readonly pid: number | null;
  readonly ageSeconds: number | null;
  readonly restarts: number;
  /** Why it does not serve, or what it cannot do; null when it serves. */
  readonly reason: string | null;
  /** How to restart one that has not served for a minute; else null. */
  readonly fix: string | null;
  /** Number of unread records; null when it reads no log, or Kafka does not answer. */
  readonly lag: number | null;
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

async function probeWithin(name: string, file: StackFile): Promise<Found> {
  try {
    return await waitAtMost(PROBE_MAX_MS, probe(name, file), () => {
      throw new Error(`it has not answered for ${PROBE_MAX_MS / 1000} s`);
    });
  } catch (error) {
    return { fault: sentenceOf(error), degraded: null };
  }
}

function stateOf({ pid, state }: Condition, { fault, degraded }: Found): ProcessStatus['state'] {
  if (pid === null) return 'down';
  if (fault !== null) return state === 'starting' ? 'starting' : 'does not serve';
  return degraded === null ? 'serves' : 'degraded';
}

function reasonOf({ pid, reason, restarts }: Condition, { fault, degraded }: Found): string | null {
  if (pid === null) return `ended (${reason ?? 'for an unknown reason'}); restarted ${restarts} times`;
  return fault ?? degraded;
}

/**
 * Probes every process of this checkout's stack.
 * @param options.readsLag false leaves `lag` null, and saves a dozen requests
 * @returns null when no supervisor runs
 */
export async function readStatus(paths: StackPaths, { readsLag = true } = {}): Promise<ProcessStatus[] | null> {
  const conditions = readConditions(paths);
  if (conditions === null) return null;
  const file = readStackFile(paths);
  const startedAt = supervisedSinceAt(paths);
  const none = new Map<string, number>();
  const reading = file === null || !readsLag ? Promise.resolve(none) : readLag(file).catch(() => none);
  const lags = await waitAtMost(PROBE_MAX_MS, reading, () => none);
  const probed = conditions.map(async (condition): Promise<ProcessStatus> => {
    const { name, pid, restarts } = condition;
    // Until everything has started there are no addresses, so the supervisor's own findings count.
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

/** Instants in ISO 8601 sort as texts. */
function latest(one: LastError, other: LastError): LastError {
  if (one === null || other === null) return one ?? other;
  return one.at >= other.at ? one : other;
}

/** Shared by `up`, `doctor` and `status`. */
export interface Verdict {
  readonly isWell: boolean;
  readonly sentence: string;
  /** Follows the sentence where the table of `status` is not shown; may be ''. */
  readonly hint: string;
}

/** @param orphans names of running processes of a dead supervisor; they count only without statuses */
export function toVerdict(statuses: readonly ProcessStatus[] | null, orphans: readonly string[] = []): Verdict {
  const unwell = (sentence: string, hint = ''): Verdict => ({ isWell: false, sentence, hint });
  if (statuses === null && orphans.length > 0)
    return unwell(
      `the supervisor is dead; ${orphans.join(', ')} still run; \`npm run up\` ends them and starts the stack`,
    );
  if (statuses === null) return unwell('the stack is not running; start it with `npm run up`');
  if (statuses.length === 0) return unwell('the stack is starting');
  const faulty = statuses.filter(({ state }) => state !== 'serves');
  if (faulty.length === 0) return { isWell: true, sentence: `all ${statuses.length} processes serve`, hint: '' };
  const names = faulty.map(({ name, state }) => `${name} ${STATE_LABELS[state]}`).join(', ');
  return unwell(`${faulty.length} of ${statuses.length} processes: ${names}`, ' (details: `npm run status`)');
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

/** A table: a line for each process, below it the reason and the last error. */
export function toLines(statuses: readonly ProcessStatus[]): string[] {
  const head = ['process', 'state', 'age', 'restarts', 'lag', 'pid'];
  const rows = statuses.map(({ name, state, ageSeconds, restarts, lag, pid }) => [
    ...[name, state, toAge(ageSeconds), String(restarts), String(lag ?? '-'), String(pid ?? '-')],
  ]);
  const widths = head.map((word, at) =>
    rows.map((cells) => cells[at]!.length).reduce((most, each) => Math.max(most, each), word.length),
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

/** Longer than a slow answer, but still tolerable for a waiting operator. */
const ANSWER_MS = 5_000;

interface Found {
  /** Null when it serves. */
  readonly fault: string | null;
  /** What a serving process cannot do; null when it can do everything. */
  readonly degraded: string | null;
}

const SERVES: Found = { fault: null, degraded: null };

async function probeRegistry(url: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`it answers with status ${answer.status}: ${text.slice(0, 200).trimEnd()}`);
}

async function probeClickHouse({ clickhouse }: StackFile, ca: string | null): Promise<void> {
  const send = createStoreFetch(ca === null ? {} : { tls: { ca } });
  // Database `default`, because a ClickHouse without our tables also counts as answering.
  const account = { ...clickhouse, database: 'default', fetch: send };
  await (await sendStatement(account, { body: 'SELECT 1', deadlineMs: ANSWER_MS })).text();
}

/** Sends a request with a login, because an open port proves little. */
async function probeStore(name: string, file: StackFile): Promise<Found> {
  const caFile = file.security?.caFile;
  const ca = caFile === undefined ? null : readFileSync(caFile, 'utf8');
  if (name === 'redis') return { fault: null, degraded: await findWriteRefusal(file.redis, ca) };
  if (name === 'clickhouse') await probeClickHouse(file, ca);
  else if (name === 'registry') await probeRegistry(`${file.registry}/subjects`);
  else if (name === 'chain' && file.chain !== undefined) await assertChain(file.chain.rpc);
  else if (name === 'kafka') await acceptsRecords(file.kafka[0] ?? '');
  return SERVES;
}

/** @throws Error with the reason when the process does not serve */
async function probe(name: string, file: StackFile): Promise<Found> {
  const admin = file.admin?.[name];
  return admin === undefined ? probeStore(name, file) : { fault: null, degraded: await readDegraded(admin) };
}

/**
 * Uncommitted records by the name of the reading service. Read from Kafka, because the lag matters most when a service
 * does not answer. A partition without a commit counts as a whole.
 */
async function readLag(file: StackFile): Promise<Map<string, number>> {
  patchKafkaTimer();
  const client = new Kafka({
    clientId: 'playline-status',
    brokers: [...file.kafka],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: ANSWER_MS,
    // The first request to a coordinator may find no connection yet.
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
