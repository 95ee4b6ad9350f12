import {
  type MessageRate,
  type ProjectEnvironment,
  type ProjectRecord,
  projectCodec,
  TOPICS,
} from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';

export type { MessageRate, ProjectEnvironment, ProjectRecord } from '@playline/contracts';

/** Projects with their environments, one record each. */
export const PROJECTS: RecordKind<ProjectRecord> = {
  name: 'projects',
  topic: TOPICS.projects.name,
  codec: projectCodec,
  idOf: ({ id }) => id,
};

/** An environment and the project that owns it. */
export interface OwnedEnvironment {
  readonly project: ProjectRecord;
  readonly environment: ProjectEnvironment;
}

/** The project with an id, or with a name that only one live project has; null when there is none. */
export function findProject(projects: readonly ProjectRecord[], idOrName: string): ProjectRecord | null {
  const byId = projects.find(({ id }) => id === idOrName);
  if (byId !== undefined) return byId;
  const named = projects.filter(({ name, state }) => name === idOrName && state === 'live');
  return named.length === 1 ? named[0]! : null;
}

/** The environment of a project with a name or an id; null when there is none. */
export function findEnvironment({ environments }: ProjectRecord, nameOrId: string): ProjectEnvironment | null {
  return environments.find(({ id, name }) => id === nameOrId || name === nameOrId) ?? null;
}

/**
 * The rate of an environment: the administrator's cap, or else the setting. The project's own limit can only lower it.
 */
export function rateOf({ cap, limit }: Pick<ProjectEnvironment, 'cap' | 'limit'>, setting: MessageRate): MessageRate {
  const allowed = cap ?? setting;
  if (limit === null) return allowed;
  return { perSecond: Math.min(allowed.perSecond, limit.perSecond), burst: Math.min(allowed.burst, limit.burst) };
}
