/** Reads the state of all environments that the rules about projects need, with a bounded number of requests. */
import {
  type EnvironmentMinute,
  type KeyRecord,
  type KeyUse,
  keysOfProject,
  MINUTE_MS,
  type ProjectEnvironment,
  type ProjectRecord,
} from '@playline/access-keys';
import type { OpenDeadLetters } from '../pipeline-status.ts';
import type { PortalParts } from '../portal-parts.ts';
import { type AlertCounts, ENVIRONMENTS_MAX, type OpenErasures } from '../reads/index.ts';

export interface KeyReading {
  readonly key: KeyRecord;
  readonly use: KeyUse;
}

/** By environment id. A reading is null if it failed. */
export interface Readings {
  readonly nowMs: number;
  /** The environments of live projects. */
  readonly environments: readonly (ProjectEnvironment & { readonly projectId: string })[];
  /** The last `COUNTED_MINUTES`, then the current minute. */
  readonly minutes: ReadonlyMap<string, readonly EnvironmentMinute[]> | null;
  readonly counts: ReadonlyMap<string, AlertCounts> | null;
  readonly erasures: ReadonlyMap<string, OpenErasures> | null;
  readonly deadLetters: OpenDeadLetters | null;
  /** Keys that end within `ENDS_WITHIN_MS` or ended within `ENDED_WITHIN_MS`. */
  readonly keys: ReadonlyMap<string, readonly KeyReading[]> | null;
}

export type ReadingParts = Pick<PortalParts, 'projects' | 'keys' | 'usage' | 'reads' | 'pipeline'> & {
  readonly onFault: (fault: unknown, message: string) => void;
};

export const COUNTED_MINUTES = 15;
const DAY_MS = 86_400_000;
/** Time to release a build with a new key. */
export const ENDS_WITHIN_MS = 7 * DAY_MS;
/** Clients that still use a key after a month are not updated any more. */
export const ENDED_WITHIN_MS = 30 * DAY_MS;

/** @throws Error if the projects cannot be read */
export async function readAlertReadings(parts: ReadingParts, nowMs: number, signal: AbortSignal): Promise<Readings> {
  const { usage, reads, pipeline, onFault } = parts;
  const projects = (await parts.projects.all()).filter(({ state }) => state === 'live');
  const environments = projects.flatMap(({ id: projectId, environments }) =>
    environments.map((environment) => ({ ...environment, projectId })),
  );
  const ids = environments.map(({ id }) => id);
  const nowS = Math.floor(nowMs / MINUTE_MS) * (MINUTE_MS / 1000);
  const orNull = <T>(read: Promise<T>): Promise<T | null> =>
    read.catch((fault) => {
      onFault(fault, 'cannot read the state for alerts; the alerts of some rules do not change');
      return null;
    });
  const [minutes, counts, erasures, deadLetters, keys] = await Promise.all([
    orNull(usage.readEnvironments(ids, COUNTED_MINUTES + 1)),
    orNull(inChunks(ids, (environmentIds) => reads.alertCounts({ environmentIds, nowS }, { signal }))),
    orNull(
      inChunks(ids, async (each) => {
        const open = await reads.openErasures(each, { signal });
        return open.map((found) => [found.environmentId, found] as const);
      }),
    ),
    orNull(pipeline.openDeadLetters()),
    orNull(readKeys(parts, projects, nowMs)),
  ]);
  return { nowMs, environments, minutes, counts, erasures, deadLetters, keys };
}

async function inChunks<T>(
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<Iterable<readonly [string, T]>>,
): Promise<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  for (let at = 0; at < ids.length; at += ENVIRONMENTS_MAX)
    for (const [id, value] of await read(ids.slice(at, at + ENVIRONMENTS_MAX))) found.set(id, value);
  return found;
}

async function readKeys(
  { keys: records, usage }: Pick<ReadingParts, 'keys' | 'usage'>,
  projects: readonly ProjectRecord[],
  nowMs: number,
): Promise<ReadonlyMap<string, readonly KeyReading[]>> {
  const byProject = Map.groupBy(await records.all(), ({ projectId }) => projectId);
  const keys = projects
    .flatMap(({ id }) => keysOfProject(byProject.get(id) ?? [], id))
    .filter(({ endsAt, revokedAt }) =>
      revokedAt === null ? endsAt !== null && endsAt < nowMs + ENDS_WITHIN_MS : revokedAt > nowMs - ENDED_WITHIN_MS,
    );
  const uses = await usage.readKeys(keys.map(({ keyId }) => keyId));
  const readings = keys.flatMap((key) => {
    const use = uses.get(key.keyId);
    return use === undefined ? [] : [{ key, use }];
  });
  return Map.groupBy(readings, ({ key }) => key.environmentId);
}
