import type { KeyRecord } from '../key-store.ts';
import type { Content } from '../records/record-store.ts';
import { type ProjectContext, USUAL_ENVIRONMENTS } from './operations.ts';
import type { ProjectEnvironment, ProjectRecord } from './project.ts';

/** The project that a deployment begins with when it has neither projects nor keys. */
const FIRST_PROJECT = 'demo';

/** The fields of a key about its environment. */
export type KeyOwner = Pick<KeyRecord, 'projectId' | 'environmentId' | 'environment' | 'createdAt'>;

/**
 * Creates projects for the environments of existing keys. Releases without projects made keys in environments that
 * nobody had created, and allowed production and development in any project, so both are created too. Ids stay the
 * same. If there is neither a project nor a key, `demo` is created. May be repeated: what exists stays as it is.
 * @returns the number of records that were written
 */
export async function adoptProjects({ store }: ProjectContext, owners: readonly KeyOwner[]): Promise<number> {
  let written = 0;
  while ((await store.change((projects) => nextToAdopt(projects, owners))) !== null) written++;
  return written;
}

/** The next project to create or complete, with all environments of its keys; null when none is left. */
function nextToAdopt(projects: readonly ProjectRecord[], owners: readonly KeyOwner[]): Content<ProjectRecord> | null {
  if (projects.length === 0 && owners.length === 0) return makeFirst();
  const known = new Set(projects.flatMap(({ environments }) => environments.map(({ id }) => id)));
  const missing = owners.find(({ environmentId }) => !known.has(environmentId));
  if (missing === undefined) return null;
  const { projectId: id } = missing;
  const lacking = owners.filter((owner) => owner.projectId === id && !known.has(owner.environmentId));
  const oldestFirst = lacking.toSorted((a, b) => a.createdAt - b.createdAt);
  const environments = new Map<string, ProjectEnvironment>();
  for (const owner of oldestFirst)
    if (!environments.has(owner.environmentId)) environments.set(owner.environmentId, toEnvironment(owner));
  const standing = projects.find((project) => project.id === id);
  const added = [...environments.values()];
  if (standing !== undefined) return { ...standing, environments: [...standing.environments, ...added] };
  const createdAt = oldestFirst[0]!.createdAt;
  return { id, name: id, state: 'live', environments: [...added, ...usualBeside(id, added, createdAt)], createdAt };
}

function makeFirst(): Content<ProjectRecord> {
  const createdAt = Date.now();
  const environments = usualBeside(FIRST_PROJECT, [], createdAt);
  return { id: FIRST_PROJECT, name: FIRST_PROJECT, state: 'live', environments, createdAt };
}

/** The usual environments that a project lacks. */
function usualBeside(id: string, there: readonly ProjectEnvironment[], createdAt: number): ProjectEnvironment[] {
  const lacking = USUAL_ENVIRONMENTS.filter(({ name }) => !there.some((each) => each.name === name));
  return lacking.map(({ name, kind }) => ({ id: `${id}-${name}`, name, kind, cap: null, limit: null, createdAt }));
}

function toEnvironment({ projectId, environmentId: id, environment: kind, createdAt }: KeyOwner): ProjectEnvironment {
  const start = `${projectId}-`;
  const name = id.startsWith(start) && id.length > start.length ? id.slice(start.length) : id;
  return { id, name, kind, cap: null, limit: null, createdAt };
}
