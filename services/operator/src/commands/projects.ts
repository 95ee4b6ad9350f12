import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import {
  type AccessKeyRecord,
  addEnvironment,
  archiveProject,
  createProject,
  DEFAULT_ENVIRONMENTS,
  keysOfProject,
  type MessageRate,
  type ProjectEnvironment,
  type ProjectRecord,
  renameProject,
  setAnalysisSettings,
  setRates,
  type WantedRates,
} from '@playline/access-keys';
import { MESSAGE_RATE_MAX } from '@playline/contracts';
import {
  type Deps as CommandDeps,
  type CreateCommand,
  command,
  confirm,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
  UsageError,
  yesOption,
} from '../command.ts';
import { type ProjectSources, requireProject, withProjects } from '../projects/environments.ts';
import { type RecordSources, readRecords } from '../records/record-access.ts';

export interface ProjectsContext extends ProjectSources {
  readonly keys: RecordSources<AccessKeyRecord>;
}

const ABOUT = `
A project represents a game. Each environment of a project has its own events, keys and limits. Ids never change and are
never reused. In a new deployment, the first command creates the project demo.

Requires REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;

const LIMIT = `
Rates have the format <messages per second>/<burst>, such as 500/1000. Gateways apply changes within a second.`;

const ANALYSIS = `
A declared property is readable with its complete value in the column safe_properties of all analyst views. The settings
apply to queries as soon as the event writer has stored the change, usually within a second.`;

type Deps = CommandDeps<ProjectsContext>;

const project = () => new Option('--project <project>', 'project id or name').makeOptionMandatory();

export const createProjectsCommand =
  (context: ProjectsContext): CreateCommand =>
  (terminal) => {
    const deps: Deps = { context, terminal };
    return command('projects', 'manage projects, environments and rate limits')
      .addCommand(create(deps))
      .addCommand(list(deps))
      .addCommand(showOne(deps))
      .addCommand(rename(deps))
      .addCommand(archive(deps))
      .addCommand(newEnvironment(deps))
      .addCommand(limit(deps))
      .addCommand(analysis(deps))
      .addHelpText('after', ABOUT);
  };

const create = (deps: Deps) =>
  jsonCommand('create', 'create a project with the environments production and development')
    .requiredOption('--name <name>', 'project name')
    .option('--id <id>', 'id of the new project (default: random)')
    .action(({ name, id, ...output }) => {
      const wanted = { name, id, environments: DEFAULT_ENVIRONMENTS };
      return change(deps, output, (store) => createProject({ store }, wanted));
    });

const list = ({ context, terminal }: Deps) =>
  jsonCommand('list', 'list projects, oldest first').action(async (output) => {
    const projects = await withProjects(context, (store) => store.readAll());
    for (const each of projects.toSorted((a, b) => a.createdAt - b.createdAt)) {
      const names = each.environments.map(({ name }) => name).join(', ');
      printResult(terminal, output, each, `${toSummary(each)}  ${names}`);
    }
  });

const showOne = ({ context, terminal }: Deps) =>
  jsonCommand('show', 'show a project with its environments and limits')
    .addOption(project())
    .action(async (options) => show(await requireProject(context, options.project), options, terminal));

const rename = (deps: Deps) =>
  jsonCommand('rename', 'rename a project')
    .addOption(project())
    .requiredOption('--name <name>', 'new name')
    .action((options) => change(deps, options, (store) => renameProject({ store }, options.project, options.name)));

const archive = (deps: Deps) =>
  jsonCommand('archive', 'permanently archive a project')
    .addOption(project())
    .addOption(yesOption())
    .addHelpText('after', "\nRevoke the project's live keys first. Stored events are not deleted.")
    .action(async (options) => {
      const { id, name } = await requireProject(deps.context, options.project);
      await assertNoLiveKeys(deps.context, id);
      await confirm(
        `This permanently archives project ${id} (${name}). Stored events are not deleted.`,
        options,
        deps.terminal,
      );
      // Checked again, because keys may have been created while the command waited for confirmation.
      await assertNoLiveKeys(deps.context, id);
      return change(deps, options, (store) => archiveProject({ store }, id));
    });

const newEnvironment = (deps: Deps) =>
  jsonCommand('add-environment', 'add an environment with the id <project id>-<name> to a project')
    .addOption(project())
    .requiredOption('--name <name>', 'environment name')
    .addOption(
      new Option('--kind <kind>', 'environment kind')
        .choices(['production', 'development'] as const)
        .makeOptionMandatory(),
    )
    .action(({ json, ...wanted }) => change(deps, { json }, (store) => addEnvironment({ store }, wanted)));

const limit = (deps: Deps) =>
  jsonCommand('limit', 'set the message rate limits of an environment')
    .addOption(project())
    .requiredOption('--environment <name>', 'environment name or id')
    .option(
      '--cap <rate>',
      "administrator's limit, which overrides the gateway setting; none removes the limit",
      parseRate,
    )
    .option('--limit <rate>', "project's own limit, up to the cap; none removes the limit", parseRate)
    .addHelpText('after', LIMIT)
    .action(async (options) => {
      const rates = { ...rateOf('cap', options.cap), ...rateOf('limit', options.limit) };
      if (Object.keys(rates).length === 0) throw new UsageError('Pass --cap or --limit.');
      await change(deps, options, (store) => setRates({ store }, options, rates));
    });

const analysis = (deps: Deps) =>
  jsonCommand(
    'analysis',
    'set the time zone of days for analysts, and the properties that analysts without raw ids may read',
  )
    .addOption(project())
    .option('--time-zone <zone>', 'time zone of the days in analyst views, such as Europe/Berlin')
    .option(
      '--safe-properties <names>',
      'all property names that analysts without raw ids may read, separated by commas; none removes all',
    )
    .addHelpText('after', ANALYSIS)
    .action(async ({ project, timeZone, safeProperties: names, ...output }) => {
      if (timeZone === undefined && names === undefined) throw new UsageError('Pass --time-zone or --safe-properties.');
      const safeProperties = names === 'none' ? [] : names?.split(',').map((name) => name.trim());
      await change(deps, output, (store) => setAnalysisSettings({ store }, project, { timeZone, safeProperties }));
    });

type Rate = MessageRate | 'none';

const rateOf = (name: keyof WantedRates, rate: Rate | undefined): WantedRates =>
  rate === undefined ? {} : { [name]: rate === 'none' ? null : rate };

async function change(
  { context, terminal }: Deps,
  output: JsonOption,
  work: Parameters<typeof withProjects<ProjectRecord>>[1],
): Promise<void> {
  show(await withProjects(context, work), output, terminal);
}

async function assertNoLiveKeys(context: ProjectsContext, id: string): Promise<void> {
  const keys = keysOfProject(await readRecords(context.keys), id);
  if (keys.every(({ revokedAt }) => revokedAt !== null)) return;
  throw new Error(`project ${id} has live keys: revoke the keys first (npm run keys -- list --project ${id})`);
}

const RATE = /^([1-9]\d{0,5})\/([1-9]\d{0,7})$/;

/** @throws InvalidArgumentError */
function parseRate(text: string): Rate {
  if (text === 'none') return text;
  const max = MESSAGE_RATE_MAX;
  const [, perSecond = 0, burst = 0] = (RATE.exec(text) ?? []).map(Number);
  if (perSecond < 1 || burst < 1 || perSecond > max.perSecond || burst > max.burst)
    throw new InvalidArgumentError(
      `Expected messages per second (1 to ${max.perSecond}) and a burst (1 to ${max.burst}), such as 500/1000, or none.`,
    );
  return { perSecond, burst };
}

function show(project: ProjectRecord, output: JsonOption, terminal: Terminal): void {
  const { revision, changedAt, changedBy } = project;
  printResult(terminal, output, project, [
    toSummary(project),
    ...project.environments.map((environment) => `  ${toLine(environment)}`),
    `  time zone ${project.timeZone}, safe properties: ${project.safeProperties.join(', ') || 'none'}`,
    `  changed ${new Date(changedAt).toISOString()} by ${changedBy}, revision ${revision}`,
  ]);
}

function toSummary({ id, name, state, createdAt }: ProjectRecord): string {
  return `${id}  ${name}  ${state}  created ${new Date(createdAt).toISOString()}`;
}

function toLine({ id, name, kind, cap, limit }: ProjectEnvironment): string {
  const toText = (rate: MessageRate) => `${rate.perSecond}/${rate.burst}`;
  const allowed = cap === null ? 'gateway limit' : `cap ${toText(cap)}`;
  return `${id}  ${name}  ${kind}  ${allowed}${limit === null ? '' : `  limit ${toText(limit)}`}`;
}
