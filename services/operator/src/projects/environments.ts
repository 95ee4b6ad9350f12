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

/** The records of projects. */
export interface ProjectSources {
  readonly projects: RecordSources<ProjectRecord>;
}

/** Names an environment: project and environment by id or by name. */
export interface EnvironmentName {
  readonly project: string;
  readonly environment: string;
}

/** Reads or changes projects. On first use, the project `demo` is created. */
export function withProjects<T>(
  sources: ProjectSources,
  work: (store: RecordStore<ProjectRecord>) => Promise<T>,
): Promise<T> {
  return withRecords(sources.projects, async (store) => {
    if ((await store.readAll()).length === 0) await createFirstProject({ store });
    return work(store);
  });
}

/** @param wanted id or name. @throws Error with advice when there is no such project */
export async function requireProjectId(sources: ProjectSources, wanted: string): Promise<string> {
  const found = findProject(await withProjects(sources, (store) => store.readAll()), wanted);
  if (found !== null) return found.id;
  throw new Error(`there is no project ${wanted}: npm run projects -- list shows those that there are`);
}

/** Finds an environment. @throws Error with advice when it does not exist, or its project is archived */
export async function requireEnvironment(sources: ProjectSources, name: EnvironmentName): Promise<OwnedEnvironment> {
  const found = findOwned(await withProjects(sources, (store) => store.readAll()), name);
  if (typeof found === 'string') throw new Error(found);
  return found;
}

/** The environment, or advice when it does not exist. Its id needs no project, since an id exists once in all of them. */
function findOwned(projects: readonly ProjectRecord[], wanted: EnvironmentName): OwnedEnvironment | string {
  const project = findProject(projects, wanted.project);
  const owner = projects.find(({ environments }) => environments.some(({ id }) => id === wanted.environment));
  if (owner !== undefined && owner.id !== project?.id && findOwnEnvironment(project, wanted) === null) {
    if (wanted.project !== FIRST_PROJECT)
      return `the environment ${wanted.environment} belongs to the project ${owner.id}: use --project ${owner.id}`;
    return findOwned(projects, { ...wanted, project: owner.id });
  }
  if (project === null)
    return `there is no project ${wanted.project}: npm run projects -- create --name ${wanted.project}, or npm run projects -- list shows those that there are`;
  if (project.state === 'archived') return `the project ${project.id} is archived: nothing is made in it any more`;
  const environment = findEnvironment(project, wanted.environment);
  if (environment !== null) return { project, environment };
  const names = project.environments.map(({ name }) => name).join(', ');
  return `the project ${project.id} has no environment ${wanted.environment} (it has ${names}): npm run projects -- add-environment --project ${project.id} --name ${wanted.environment} --kind production|development`;
}

const findOwnEnvironment = (project: ProjectRecord | null, { environment }: EnvironmentName) =>
  project === null ? null : findEnvironment(project, environment);
