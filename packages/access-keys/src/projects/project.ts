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

/** The project that is meant by an id, or by a name that one live project alone has; null when there is none. */
export function findProject(projects: readonly ProjectRecord[], idOrName: string): ProjectRecord | null {
  const byId = projects.find(({ id }) => id === idOrName);
  if (byId !== undefined) return byId;
  const named = projects.filter(({ name, state }) => name === idOrName && state === 'live');
  return named.length === 1 ? named[0]! : null;
}

/** The environment of a project that is meant by a name or an id; null when it has none. */
export function findEnvironment({ environments }: ProjectRecord, nameOrId: string): ProjectEnvironment | null {
  return environments.find(({ id, name }) => id === nameOrId || name === nameOrId) ?? null;
}

/**
 * What an environment may send: what an administrator has allowed, else the setting; and no more than the project itself
 * wants, which may lower it alone.
 */
export function rateOf({ cap, limit }: Pick<ProjectEnvironment, 'cap' | 'limit'>, setting: MessageRate): MessageRate {
  const allowed = cap ?? setting;
  if (limit === null) return allowed;
  return { perSecond: Math.min(allowed.perSecond, limit.perSecond), burst: Math.min(allowed.burst, limit.burst) };
}
