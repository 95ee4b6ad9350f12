/** Computes the alerts for a project when a page is opened. */
import { type KeyRecord, keysOfProject, NO_USE, type ProjectRecord } from '@playline/access-keys';
import { settleWithin } from '@playline/http';
import type { PageParts } from '../pages/index.ts';

/** Metrics of the last 61 minutes, including the current minute. A metric that cannot be read is null. */
export type ProjectMetrics = Awaited<ReturnType<typeof readMetrics>>;
export type MetricsParts = Pick<PageParts, 'usage' | 'pipeline' | 'keys' | 'frame'>;

const METRICS_MINUTES = 61;
const READ_MAX_MS = 2_000;

/** Never rejects. */
export async function readMetrics(parts: MetricsParts, projects: readonly ProjectRecord[]) {
  const { usage, pipeline, frame } = parts;
  const ids = projects.flatMap(({ environments }) => environments.map(({ id }) => id));
  const [minutes, delay, deadLetters, keyMetrics] = await Promise.all([
    orNull(usage.readEnvironments(ids, METRICS_MINUTES)),
    orNull(pipeline.writerDelay()),
    orNull(pipeline.openDeadLetters()),
    readKeys(parts, projects),
  ]);
  return { minutes, delay, deadLetters, ...keyMetrics, nowMs: frame.wallClockMs() };
}

/** Reads live keys by project id and usage by key id. */
async function readKeys({ keys, usage }: MetricsParts, projects: readonly ProjectRecord[]) {
  const records = await orNull(keys.all());
  if (records === null) return { keys: null, uses: null };
  const live = new Map(
    projects.map(({ id }) => [id, keysOfProject(records, id).filter(({ revokedAt }) => revokedAt === null)]),
  );
  const uses = await orNull(usage.readKeys([...live.values()].flat().map(({ keyId }) => keyId)));
  return { keys: live, uses };
}

/** Resolves to null if the read fails or takes too long. */
export const orNull = <T>(read: Promise<T>): Promise<T | null> => settleWithin(READ_MAX_MS, read).catch(() => null);

export type AlertKind = 'rejections' | 'delay' | 'dead letters' | 'unused key' | 'refused key';

export interface Alert {
  readonly kind: AlertKind;
  /** Null for the whole project. */
  readonly environment: string | null;
  readonly value: number;
  /** The total of which `value` is a part, or the number of waiting messages; 0 if neither applies. */
  readonly total: number;
  /** The name of the key and its first and last characters; empty if the alert is not about a key. */
  readonly name: string;
}

export const ALERT_THRESHOLDS = {
  rejectedFraction: 0.05,
  minMessages: 100,
  delayMs: 60_000,
  /** Time since a secret key was last used or, if it was never used, created. */
  unusedMs: 90 * 86_400_000,
  /** Minimum number of refused requests per key in the last hour. `refusedFraction` is the minimum fraction. */
  minRefusals: 20,
  refusedFraction: 0.1,
} as const;

export type FoundAlerts = ReturnType<typeof findAlerts>;

export function findAlerts(project: ProjectRecord, metrics: ProjectMetrics) {
  const { minutes, delay, deadLetters, keys, uses } = metrics;
  const unavailable: AlertKind[] = [];
  if (minutes === null) unavailable.push('rejections');
  if (delay === null) unavailable.push('delay');
  if (deadLetters === null) unavailable.push('dead letters');
  if (keys === null || uses === null) unavailable.push('unused key', 'refused key');
  const alerts = [
    ...findDelay(metrics),
    ...project.environments.flatMap((each) => [...findRejections(each, metrics), ...findDeadLetters(each, metrics)]),
    ...(keys?.get(project.id) ?? []).flatMap((key) => findKeyAlerts(project, key, metrics)),
  ];
  return { alerts, unavailable };
}

type Environment = ProjectRecord['environments'][number];

function findDelay({ delay, nowMs }: ProjectMetrics): Alert[] {
  const value = delay?.oldestMs == null ? 0 : nowMs - delay.oldestMs;
  if (value <= ALERT_THRESHOLDS.delayMs) return [];
  return [{ kind: 'delay', environment: null, value, total: delay?.waiting ?? 0, name: '' }];
}

function findRejections({ id, name }: Environment, { minutes }: ProjectMetrics): Alert[] {
  const counted = minutes?.get(id) ?? [];
  const value = counted.reduce((sum, minute) => sum + minute.rejected, 0);
  const total = counted.reduce((sum, minute) => sum + minute.accepted, value);
  if (total < ALERT_THRESHOLDS.minMessages || value <= ALERT_THRESHOLDS.rejectedFraction * total) return [];
  return [{ kind: 'rejections', environment: name, value, total, name: '' }];
}

function findDeadLetters({ id, name }: Environment, { deadLetters }: ProjectMetrics): Alert[] {
  const value = deadLetters?.byEnvironment.get(id) ?? 0;
  return value === 0 ? [] : [{ kind: 'dead letters', environment: name, value, total: 0, name: '' }];
}

function findKeyAlerts({ environments }: ProjectRecord, key: KeyRecord, { uses, nowMs }: ProjectMetrics): Alert[] {
  if (uses === null) return [];
  const { lastUsedAt, usesOfHour, refusalsOfHour } = uses.get(key.keyId) ?? NO_USE;
  const environment = environments.find(({ id }) => id === key.environmentId)?.name ?? null;
  const name = `${key.name === '' ? key.kind : key.name} ${key.first4}…${key.last4}`;
  const alerts: Alert[] = [];
  const unusedMs = nowMs - (lastUsedAt ?? key.createdAt);
  if (key.kind === 'secret' && unusedMs > ALERT_THRESHOLDS.unusedMs)
    alerts.push({ kind: 'unused key', environment, value: unusedMs, total: 0, name });
  if (refusalsOfHour >= ALERT_THRESHOLDS.minRefusals && refusalsOfHour >= ALERT_THRESHOLDS.refusedFraction * usesOfHour)
    alerts.push({ kind: 'refused key', environment, value: refusalsOfHour, total: usesOfHour, name });
  return alerts;
}
