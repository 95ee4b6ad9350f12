import {
  createFirstProject,
  FIRST_PROJECT,
  findEnvironment,
  findProject,
  type OwnedEnvironment,
  type ProjectRecord,
  type RecordStore,
} from '@playline/access-keys';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface ProjectSources {
  readonly projects: RecordSources<ProjectRecord>;
}

/** A project and an environment, each by id or name. */
export interface EnvironmentName {
  readonly project: string;
  readonly environment: string;
}

/** Runs `work` with the project store, and creates the project `demo` in a new deployment. */
export function withProjects<T>(sources: ProjectSources, work: (store: RecordStore<ProjectRecord>) => Promise<T>) {
  return withRecords(sources.projects, async (store) => {
    if ((await store.readAll()).length === 0) await createFirstProject({ store });
    return work(store);
  });
}

/** @throws Error when the project does not exist */
export async function requireProject(sources: ProjectSources, idOrName: string): Promise<ProjectRecord> {
  const found = findProject(await withProjects(sources, (store) => store.readAll()), idOrName);
  if (found !== null) return found;
  throw new Error(`project ${idOrName} does not exist: npm run projects -- list shows all projects`);
}

/** @throws Error when the environment does not exist, or its project is archived */
export async function requireEnvironment(sources: ProjectSources, name: EnvironmentName): Promise<OwnedEnvironment> {
  const found = findOwned(await withProjects(sources, (store) => store.readAll()), name);
  if (typeof found === 'string') throw new Error(found);
  return found;
}

/** Returns the environment, or an error message. Environment ids are unique, so a full id needs no project. */
function findOwned(projects: readonly ProjectRecord[], wanted: EnvironmentName): OwnedEnvironment | string {
  const project = findProject(projects, wanted.project);
  const owner = projects.find(({ environments }) => environments.some(({ id }) => id === wanted.environment));
  const environment = project === null ? null : findEnvironment(project, wanted.environment);
  if (owner !== undefined && owner.id !== project?.id && environment === null) {
    if (wanted.project !== FIRST_PROJECT)
      return `environment ${wanted.environment} belongs to project ${owner.id}: pass --project ${owner.id}`;
    return findOwned(projects, { ...wanted, project: owner.id });
  }
  if (project === null)
    return `project ${wanted.project} does not exist: create it (npm run projects -- create --name ${wanted.project}), or list all projects (npm run projects -- list)`;
  if (project.state === 'archived') return `project ${project.id} is archived and can no longer be changed`;
  if (environment !== null) return { project, environment };
  const names = project.environments.map(({ name }) => name).join(', ');
  return `project ${project.id} has no environment ${wanted.environment} (existing environments: ${names}): npm run projects -- add-environment --project ${project.id} --name ${wanted.environment} --kind production|development`;
}
