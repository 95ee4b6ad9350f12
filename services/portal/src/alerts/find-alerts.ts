import {
  type EnvironmentMinute,
  type KeyRecord,
  type KeyUse,
  keysOfProject,
  NO_USE,
  type ProjectRecord,
} from '@playline/access-keys';
import { settleWithin } from '@playline/http';
import type { PagesParts } from '../pages/index.ts';
import type { OpenDeadLetters, WriterDelay } from '../pipeline-status.ts';

/** What is told of projects; null where it cannot be had now: a page tells the rest all the same, and says what is missing. */
export interface Figures {
  /** Of the last hour and the minute that is not over, by environment id. */
  readonly minutes: ReadonlyMap<string, readonly EnvironmentMinute[]> | null;
  readonly delay: WriterDelay | null;
  readonly deadLetters: OpenDeadLetters | null;
  /** Live keys by project id, and how each is used. */
  readonly keys: ReadonlyMap<string, readonly KeyRecord[]> | null;
  readonly uses: ReadonlyMap<string, KeyUse> | null;
  readonly nowMs: number;
}

export type FiguresParts = Pick<PagesParts, 'usage' | 'pipeline' | 'keys' | 'frame'>;

/** An hour, and the minute that is not over. */
const MINUTES = 61;
/** Stores that do not answer keep nobody from their projects. */
const READ_MAX_MS = 2_000;

/** Reads what pages tell of projects. Never throws: what cannot be had is null. */
export async function readFigures(parts: FiguresParts, projects: readonly ProjectRecord[]): Promise<Figures> {
  const { usage, pipeline: standing, frame } = parts;
  const ids = projects.flatMap(({ environments }) => environments.map(({ id }) => id));
  const [minutes, delay, letters, ofKeys] = await Promise.all([
    orNull(usage.readEnvironments(ids, MINUTES)),
    orNull(standing.writerDelay()),
    orNull(standing.openDeadLetters()),
    readKeys(parts, projects),
  ]);
  return { minutes, delay, deadLetters: letters, ...ofKeys, nowMs: frame.wallClockMs() };
}

async function readKeys({ keys, usage }: FiguresParts, projects: readonly ProjectRecord[]) {
  const lists = await orNull(
    keys.all().then((records) => projects.map(({ id }) => [id, keysOfProject(records, id)] as const)),
  );
  if (lists === null) return { keys: null, uses: null };
  const isLive = ({ revokedAt }: KeyRecord) => revokedAt === null;
  const live = new Map(lists.map(([id, list]) => [id, list.filter(isLive)]));
  const uses = await orNull(usage.readKeys([...live.values()].flat().map(({ keyId }) => keyId)));
  return { keys: live, uses };
}

/** Null where it fails or takes too long. */
export const orNull = <T>(reading: Promise<T>): Promise<T | null> =>
  settleWithin(READ_MAX_MS, reading).catch(() => null);

/** Something that somebody should look at. */
export interface Alert {
  readonly kind: AlertKind;
  /** Name of the environment that it is about; null: of the whole project. */
  readonly environment: string | null;
  /** What is so now, and since when or of how many. */
  readonly figures: AlertFigures;
}

export type AlertKind = 'rejections' | 'delay' | 'dead letters' | 'unused key' | 'refused key';

export interface AlertFigures {
  /** What is counted, or milliseconds. */
  readonly value: number;
  /** Of so many; 0 where it is of nothing. */
  readonly of: number;
  /** What it is called by people, such as a key's name and ends; '' where there is only one. */
  readonly name: string;
}

/** From where on something is an alert; each is said on the page. */
export const ALERT_BOUNDS = {
  /** Share of the messages of the last hour that was rejected. */
  rejectedShare: 0.05,
  /** Fewer messages than this say nothing about a share. */
  messagesMin: 100,
  /** For how long the oldest message has waited to be stored. */
  delayMs: 60_000,
  /** For how long a secret key was not used, or was not used since it was made. */
  unusedMs: 90 * 86_400_000,
  /** Requests of the last hour under a key that were refused, and what share of its requests they are. */
  refusals: 20,
  refusedShare: 0.1,
} as const;

/** What is to be looked at in a project, and what cannot be told now. */
export interface FoundAlerts {
  readonly alerts: readonly Alert[];
  /** Kinds about which nothing can be said: that there is no alert of them means nothing. */
  readonly unknown: readonly AlertKind[];
}

/** Looks for alerts in figures as they are now. Keeps nothing: what has passed is told by nobody. */
export function findAlerts(project: ProjectRecord, figures: Figures): FoundAlerts {
  const { minutes, delay, deadLetters: letters, keys, uses } = figures;
  const unknown: AlertKind[] = [];
  if (minutes === null) unknown.push('rejections');
  if (delay === null) unknown.push('delay');
  if (letters === null) unknown.push('dead letters');
  if (keys === null || uses === null) unknown.push('unused key', 'refused key');
  const alerts = [
    ...ofDelay(figures),
    ...project.environments.flatMap((each) => [...ofRejections(each, figures), ...ofDeadLetters(each, figures)]),
    ...(keys?.get(project.id) ?? []).flatMap((key) => ofKey(project, key, figures)),
  ];
  return { alerts, unknown };
}

type Environment = ProjectRecord['environments'][number];

function ofDelay({ delay, nowMs }: Figures): Alert[] {
  const value = delay?.oldestMs == null ? 0 : nowMs - delay.oldestMs;
  if (value <= ALERT_BOUNDS.delayMs) return [];
  return [{ kind: 'delay', environment: null, figures: { value, of: delay?.waiting ?? 0, name: '' } }];
}

function ofRejections({ id, name }: Environment, { minutes }: Figures): Alert[] {
  const counted = minutes?.get(id) ?? [];
  const rejected = counted.reduce((sum, minute) => sum + minute.rejected, 0);
  const all = counted.reduce((sum, minute) => sum + minute.accepted, rejected);
  if (all < ALERT_BOUNDS.messagesMin || rejected <= ALERT_BOUNDS.rejectedShare * all) return [];
  return [{ kind: 'rejections', environment: name, figures: { value: rejected, of: all, name: '' } }];
}

function ofDeadLetters({ id, name }: Environment, { deadLetters: letters }: Figures): Alert[] {
  const value = letters?.byEnvironment.get(id) ?? 0;
  return value === 0 ? [] : [{ kind: 'dead letters', environment: name, figures: { value, of: 0, name: '' } }];
}

function ofKey({ environments }: ProjectRecord, key: KeyRecord, { uses, nowMs }: Figures): Alert[] {
  if (uses === null) return [];
  const { lastUsedAt, usesOfHour, refusalsOfHour } = uses.get(key.keyId) ?? NO_USE;
  const environment = environments.find(({ id }) => id === key.environmentId)?.name ?? null;
  const name = `${key.name === '' ? key.kind : key.name} ${key.first4}…${key.last4}`;
  const alerts: Alert[] = [];
  const unusedMs = nowMs - (lastUsedAt ?? key.createdAt);
  if (key.kind === 'secret' && unusedMs > ALERT_BOUNDS.unusedMs)
    alerts.push({ kind: 'unused key', environment, figures: { value: unusedMs, of: 0, name } });
  if (refusalsOfHour >= ALERT_BOUNDS.refusals && refusalsOfHour >= ALERT_BOUNDS.refusedShare * usesOfHour)
    alerts.push({ kind: 'refused key', environment, figures: { value: refusalsOfHour, of: usesOfHour, name } });
  return alerts;
}
