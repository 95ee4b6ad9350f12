import { Option } from '@commander-js/extra-typings';
import {
  type CollectionName,
  type CollectionRecord,
  collectionsOf,
  FIRST_PROJECT,
  linkCollection,
  moveCollection,
  type ReadCode,
  relinkCollection,
  renameCollection,
  unlinkCollection,
} from '@playline/access-keys';
import {
  type Deps as CommandDeps,
  type CreateCommand,
  command,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
} from '../command.ts';
import { type ContractOptions, contractOf } from '../contract-option.ts';
import { type EnvironmentOptions, environmentOf, projectOf } from '../keys/subcommands.ts';
import { type ProjectSources, requireEnvironment, requireProject } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface CollectionsContext extends ProjectSources {
  readonly collections: RecordSources<CollectionRecord>;
  /** Names of the served chains, or null if unknown. */
  readonly servedChains: () => readonly string[] | null;
  readonly readCode: ReadCode;
}

const ABOUT = `
A collection is a contract that is linked to a project. A contract can be linked to only one project at a time. Other
projects cannot see who has linked the contract. An address without code is refused if CHAIN_NODES lists its chain.

Requires REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;

type Deps = CommandDeps<CollectionsContext>;

const project = () => new Option('--project <project>', 'project id or name').default(FIRST_PROJECT);
const environment = () => new Option('--environment <name>', 'environment name or id').makeOptionMandatory();

const contractCommand = (name: string, description: string) =>
  jsonCommand(name, description)
    .requiredOption('--chain <name>', 'chain name, as in chain API paths')
    .requiredOption('--contract <address>', 'contract address: 0x and 40 hexadecimal digits')
    .addOption(project());

export const createCollectionsCommand =
  (context: CollectionsContext): CreateCommand =>
  (terminal) => {
    const deps: Deps = { context, terminal };
    return command('collections', 'manage the contracts that are linked to projects')
      .addCommand(link(deps))
      .addCommand(list(deps))
      .addCommand(rename(deps))
      .addCommand(unlink(deps))
      .addCommand(relink(deps))
      .addCommand(move(deps))
      .addHelpText('after', ABOUT);
  };

const link = (deps: Deps) =>
  contractCommand('link', 'link a contract to a project environment')
    .addOption(environment())
    .requiredOption('--name <name>', 'collection name')
    .action((options) =>
      changeInEnvironment(deps, options, (parts, target) => linkCollection(parts, { ...target, name: options.name })),
    );

const list = ({ context, terminal }: Deps) =>
  jsonCommand('list', "list a project's collections, including unlinked collections")
    .addOption(project())
    .action(async (options) => {
      const { id: projectId } = await requireProject(context, projectOf(options));
      const records = await withRecords(context.collections, (store) => store.readAll());
      for (const record of collectionsOf(records, projectId)) print(record, options, terminal);
    });

const rename = (deps: Deps) =>
  contractCommand('rename', 'rename a collection')
    .requiredOption('--name <name>', 'new name')
    .action((options) =>
      changeInProject(deps, options, (parts, target) => renameCollection(parts, { ...target, name: options.name })),
    );

const unlink = (deps: Deps) =>
  contractCommand('unlink', 'unlink a collection from its project')
    .addHelpText('after', "\nThe project's pending mints fail. Afterwards, any project can link the contract.")
    .action((options) => changeInProject(deps, options, unlinkCollection));

const relink = (deps: Deps) =>
  contractCommand('relink', 'relink an unlinked collection, or move a collection to another environment of its project')
    .addOption(environment())
    .action((options) => changeInEnvironment(deps, options, relinkCollection));

const move = (deps: Deps) =>
  contractCommand('move', 'move a collection from another project to an environment of this project')
    .addOption(environment())
    .action((options) => changeInEnvironment(deps, options, moveCollection));

/** Also accepts archived projects. */
async function changeInProject(
  { context, terminal }: Deps,
  options: ContractOptions & EnvironmentOptions & JsonOption,
  change: (parts: Parameters<typeof unlinkCollection>[0], target: CollectionName) => Promise<CollectionRecord>,
): Promise<void> {
  const [wanted, contract] = [projectOf(options), contractOf(options)];
  const target = { ...contract, projectId: (await requireProject(context, wanted)).id };
  print(await withRecords(context.collections, (store) => change({ store }, target)), options, terminal);
}

async function changeInEnvironment(
  { context, terminal }: Deps,
  options: ContractOptions & EnvironmentOptions & JsonOption,
  change: typeof relinkCollection,
): Promise<void> {
  const [wanted, contract] = [environmentOf(options), contractOf(options)];
  const { project: owner, environment: destination } = await requireEnvironment(context, wanted);
  const target = { ...contract, projectId: owner.id, environmentId: destination.id };
  const servedChains = context.servedChains();
  const parts = { servedChains, readCode: context.readCode };
  const changed = await withRecords(context.collections, (store) => change({ store, ...parts }, target));
  print(changed, options, terminal);
}

function print(record: CollectionRecord, options: JsonOption, terminal: Terminal): void {
  const { chain, contractAddress, environmentId, name, state, changedAt, changedBy } = record;
  const changed = `changed ${new Date(changedAt).toISOString()} by ${changedBy}`;
  const text = `${chain}  ${contractAddress}  ${environmentId}  ${name}  ${state}  ${changed}`;
  printResult(terminal, options, record, text);
}
