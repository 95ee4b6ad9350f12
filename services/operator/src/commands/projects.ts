import {
  type AccessKeyRecord,
  addEnvironment,
  archiveProject,
  createProject,
  findProject,
  type KeyEnvironment,
  type MessageRate,
  type ProjectEnvironment,
  type ProjectRecord,
  renameProject,
  setRates,
  USUAL_ENVIRONMENTS,
  type WantedRates,
} from '@playline/access-keys';
import { MESSAGE_RATE_MAX } from '@playline/contracts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  isMeant,
  parseOptions,
  requiredOf,
  type Terminal,
  textOf,
  UsageError,
  type Values,
  wordOf,
} from '../command.ts';
import { type ProjectSources, withProjects } from '../projects/environments.ts';
import { type RecordSources, readRecords } from '../records/record-access.ts';

export interface ProjectsContext extends ProjectSources {
  readonly keys: RecordSources<AccessKeyRecord>;
}

const HELP = `usage: operator projects create --name N [--id I] [--json]
       operator projects list [--json]
       operator projects show|rename|archive --project P [--name N] [--yes] [--json]
       operator projects add-environment --project P --name N --kind production|development [--json]
       operator projects limit --project P --environment E [--cap R/B|none] [--limit R/B|none] [--json]
                                                                (npm run projects -- …)

A project is a game. Events, keys and limits belong to its environments. Ids never change and are never given again.

  create           makes a project with the environments production and development, under an id of its own
                   --id I   under this one instead, which nothing may ever have had
  list, show       projects; one with its environments and their limits
  rename           gives a project another name
  archive          ends a project for ever: nothing is made in it any more. Its live keys must be revoked first; asks, or
                   takes --yes
  add-environment  adds one; its id is <project's id>-<name>
  limit            messages of an environment: R a second, B at once. Gateways follow within a second
                   --cap    what an administrator allows, instead of the gateways' setting; none: that setting
                   --limit  what the project itself wants, which only lowers; none: all that is allowed

  --project P  id or name;  --environment E  name or id;  --json  JSON, one a line

A deployment without projects begins with demo.
Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a stack that runs here (.playline/stack.json).`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const OF_PROJECT = { project: text, json: flag } as const;

/** What an action of the command works with. */
interface Work {
  readonly context: ProjectsContext;
  readonly values: Values;
  readonly terminal: Terminal;
}

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly prepare: (values: Values) => (work: Work) => Promise<ExitCode>;
}

/** Changes one project and shows it. */
const changing =
  (change: (store: Parameters<Parameters<typeof withProjects>[1]>[0]) => Promise<ProjectRecord>) =>
  async ({ context, values, terminal }: Work): Promise<ExitCode> => {
    show(await withProjects(context, change), values, terminal);
    return EXIT.ok;
  };

const WORDS: Readonly<Record<string, Word>> = {
  create: {
    options: { name: text, id: text, json: flag },
    prepare: (values) => {
      const wanted = { name: requiredOf(values, 'name'), id: textOf(values, 'id'), environments: USUAL_ENVIRONMENTS };
      return changing((store) => createProject({ store }, wanted));
    },
  },
  list: { options: { json: flag }, prepare: () => list },
  show: { options: OF_PROJECT, prepare: prepareShow },
  rename: {
    options: { ...OF_PROJECT, name: text },
    prepare: (values) => {
      const [project, name] = [requiredOf(values, 'project'), requiredOf(values, 'name')];
      return changing((store) => renameProject({ store }, project, name));
    },
  },
  archive: { options: { ...OF_PROJECT, yes: flag }, prepare: prepareArchive },
  'add-environment': {
    options: { ...OF_PROJECT, name: text, kind: text },
    prepare: (values) => {
      const choices: readonly KeyEnvironment[] = ['production', 'development'];
      const [project, name] = [requiredOf(values, 'project'), requiredOf(values, 'name')];
      const wanted = { project, name, kind: choiceOf(values, 'kind', { choices }) };
      return changing((store) => addEnvironment({ store }, wanted));
    },
  },
  limit: {
    options: { ...OF_PROJECT, environment: text, cap: text, limit: text },
    prepare: (values) => {
      const wanted = { project: requiredOf(values, 'project'), environment: requiredOf(values, 'environment') };
      const rates: WantedRates = { ...rateOption(values, 'cap'), ...rateOption(values, 'limit') };
      if (Object.keys(rates).length === 0) throw new UsageError('--cap or --limit: expected one of them');
      return changing((store) => setRates({ store }, wanted, rates));
    },
  },
};

export function createProjectsCommand(context: ProjectsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values } = parseOptions(rest, word.options);
    return word.prepare(values)({ context, values, terminal });
  };
  const summary = 'create, list and change projects, their environments and their limits';
  return { name: 'projects', summary, help: HELP, run };
}

async function list({ context, values, terminal }: Work): Promise<ExitCode> {
  const projects = await withProjects(context, (store) => store.readAll());
  for (const project of projects.toSorted((a, b) => a.createdAt - b.createdAt)) {
    const names = project.environments.map(({ name }) => name).join(', ');
    terminal.result(values.json === true ? JSON.stringify(project) : `${headOf(project)}  ${names}`);
  }
  return EXIT.ok;
}

function prepareShow(values: Values) {
  const wanted = requiredOf(values, 'project');
  return async ({ context, terminal }: Work): Promise<ExitCode> => {
    show(await requireProject(context, wanted), values, terminal);
    return EXIT.ok;
  };
}

function prepareArchive(values: Values) {
  const wanted = requiredOf(values, 'project');
  return async (work: Work): Promise<ExitCode> => {
    const { id, name } = await requireProject(work.context, wanted);
    await assertNoLiveKeys(work.context, id);
    const what = `Ends the project ${id} (${name}) for ever; what it has sent stays where it is.`;
    if (!(await isMeant(what, values, work.terminal))) return EXIT.failed;
    // Checked again, since the confirmation may have taken long.
    await assertNoLiveKeys(work.context, id);
    return changing((store) => archiveProject({ store }, id))(work);
  };
}

async function assertNoLiveKeys(context: ProjectsContext, id: string): Promise<void> {
  const live = (await readRecords(context.keys)).filter((record) => record.projectId === id && record.live !== null);
  if (live.length === 0) return;
  throw new Error(
    `the project ${id} has ${live.length} live keys, which would go on: revoke them first (npm run keys -- list --project ${id})`,
  );
}

async function requireProject(context: ProjectsContext, wanted: string): Promise<ProjectRecord> {
  const found = findProject(await withProjects(context, (store) => store.readAll()), wanted);
  if (found === null)
    throw new Error(`there is no project ${wanted}: npm run projects -- list shows those that there are`);
  return found;
}

const RATE = /^([1-9]\d{0,5})\/([1-9]\d{0,7})$/;

/** `R/B` or `none`; nothing without the option. */
function rateOption(values: Values, name: 'cap' | 'limit'): WantedRates {
  const given = textOf(values, name);
  if (given === undefined) return {};
  if (given === 'none') return { [name]: null };
  const max = MESSAGE_RATE_MAX;
  const [, perSecond, burst] = (RATE.exec(given) ?? []).map(Number);
  if (perSecond === undefined || burst === undefined || perSecond > max.perSecond || burst > max.burst)
    throw new UsageError(
      `--${name}: expected messages a second (1 to ${max.perSecond}) and at once (1 to ${max.burst}) as 500/1000, or none`,
    );
  return { [name]: { perSecond, burst } };
}

function show(project: ProjectRecord, values: Values, terminal: Terminal): void {
  if (values.json === true) {
    terminal.result(JSON.stringify(project));
    return;
  }
  const { revision, changedAt, changedBy } = project;
  terminal.result(headOf(project));
  for (const environment of project.environments) terminal.result(`  ${toLine(environment)}`);
  terminal.result(`  changed ${new Date(changedAt).toISOString()} by ${changedBy}, for the ${revision}. time`);
}

function headOf({ id, name, state, createdAt }: ProjectRecord): string {
  return `${id}  ${name}  ${state}  created ${new Date(createdAt).toISOString()}`;
}

function toLine({ id, name, kind, cap, limit }: ProjectEnvironment): string {
  const toText = (rate: MessageRate) => `${rate.perSecond}/${rate.burst}`;
  const allowed = cap === null ? 'as the gateways allow' : `cap ${toText(cap)}`;
  return `${id}  ${name}  ${kind}  ${allowed}${limit === null ? '' : `  limit ${toText(limit)}`}`;
}
