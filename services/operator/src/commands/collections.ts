import { Option } from '@commander-js/extra-typings';
import {
  type CollectionName,
  type CollectionRecord,
  collectionsOf,
  FIRST_PROJECT,
  linkCollection,
  moveCollection,
  relinkCollection,
  renameCollection,
  unlinkCollection,
} from '@playline/access-keys';
import {
  type Work as CommandWork,
  type CreateCommand,
  command,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
} from '../command.ts';
import { type ContractOptions, contractOf } from '../contract-option.ts';
import { type EnvironmentOptions, environmentOf, projectOf } from '../keys/subcommands.ts';
import { type ProjectSources, requireEnvironment, requireProjectId } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface CollectionsContext extends ProjectSources {
  readonly collections: RecordSources<CollectionRecord>;
  /** Names of the served chains; null if unknown. */
  readonly servedChains: () => readonly string[] | null;
}

const ABOUT = `
A collection is a contract that is linked to a project. A contract has at most one project, which other projects cannot see.

Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;

type Work = CommandWork<CollectionsContext>;

const project = () => new Option('--project <project>', 'id or name of the project').default(FIRST_PROJECT);
const environment = () => new Option('--environment <name>', 'name or id of an environment').makeOptionMandatory();

const ofContract = (name: string, description: string) =>
  jsonCommand(name, description)
    .requiredOption('--chain <name>', 'name of the chain, as in paths of the chain API')
    .requiredOption('--contract <address>', 'address of the contract: 0x and 40 hexadecimal digits')
    .addOption(project());

export const createCollectionsCommand =
  (context: CollectionsContext): CreateCommand =>
  (terminal) => {
    const work: Work = { context, terminal };
    return command('collections', 'link contracts of chains to projects; list, rename, unlink and move them')
      .addCommand(link(work))
      .addCommand(list(work))
      .addCommand(rename(work))
      .addCommand(unlink(work))
      .addCommand(relink(work))
      .addCommand(move(work))
      .addHelpText('after', ABOUT);
  };

const link = (work: Work) =>
  ofContract('link', 'link a contract to an environment of a project')
    .addOption(environment())
    .requiredOption('--name <name>', 'name of the collection')
    .action((options) =>
      changeInEnvironment(work, options, (parts, own) => linkCollection(parts, { ...own, name: options.name })),
    );

const list = ({ context, terminal }: Work) =>
  jsonCommand('list', 'list the collections of a project, unlinked ones included')
    .addOption(project())
    .action(async (options) => {
      const projectId = await requireProjectId(context, projectOf(options));
      const records = await withRecords(context.collections, (store) => store.readAll());
      for (const record of collectionsOf(records, projectId)) print(record, options, terminal);
    });

const rename = (work: Work) =>
  ofContract('rename', 'change the name of a collection')
    .requiredOption('--name <name>', 'new name')
    .action((options) =>
      changeOwn(work, options, (parts, own) => renameCollection(parts, { ...own, name: options.name })),
    );

const unlink = (work: Work) =>
  ofContract('unlink', 'take a collection from its project')
    .addHelpText('after', '\nAny project may link the contract afterwards. Pending mints of the project fail.')
    .action((options) => changeOwn(work, options, unlinkCollection));

const relink = (work: Work) =>
  ofContract('relink', 'link an unlinked collection again, or move it to another environment of its project')
    .addOption(environment())
    .action((options) => changeInEnvironment(work, options, relinkCollection));

const move = (work: Work) =>
  ofContract('move', 'move a collection from any project to an environment of this one')
    .addOption(environment())
    .action((options) => changeInEnvironment(work, options, moveCollection));

/** The project may be archived. */
async function changeOwn(
  { context, terminal }: Work,
  options: ContractOptions & EnvironmentOptions & JsonOption,
  change: (parts: Parameters<typeof unlinkCollection>[0], own: CollectionName) => Promise<CollectionRecord>,
): Promise<void> {
  const [wanted, contract] = [projectOf(options), contractOf(options)];
  const own = { ...contract, projectId: await requireProjectId(context, wanted) };
  print(await withRecords(context.collections, (store) => change({ store }, own)), options, terminal);
}

async function changeInEnvironment(
  { context, terminal }: Work,
  options: ContractOptions & EnvironmentOptions & JsonOption,
  change: typeof relinkCollection,
): Promise<void> {
  const [wanted, contract] = [environmentOf(options), contractOf(options)];
  const { project: owner, environment: target } = await requireEnvironment(context, wanted);
  const own = { ...contract, projectId: owner.id, environmentId: target.id };
  const servedChains = context.servedChains();
  const changed = await withRecords(context.collections, (store) => change({ store, servedChains }, own));
  print(changed, options, terminal);
}

function print(record: CollectionRecord, options: JsonOption, terminal: Terminal): void {
  const { chain, contractAddress, environmentId, name, state, changedAt, changedBy } = record;
  const changed = `changed ${new Date(changedAt).toISOString()} by ${changedBy}`;
  const text = `${chain}  ${contractAddress}  ${environmentId}  ${name}  ${state}  ${changed}`;
  printResult(terminal, options, record, text);
}
