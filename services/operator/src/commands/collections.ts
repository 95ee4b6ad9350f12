import {
  type CollectionName,
  type CollectionRecord,
  collectionsOf,
  linkCollection,
  moveCollection,
  type RecordStore,
  relinkCollection,
  renameCollection,
  unlinkCollection,
} from '@playline/access-keys';
import {
  type Command,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
  wordOf,
} from '../command.ts';
import { contractOf } from '../contract-option.ts';
import { environmentOf, projectOf } from '../keys/words.ts';
import { type ProjectSources, requireEnvironment, requireProjectId } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface CollectionsContext extends ProjectSources {
  readonly collections: RecordSources<CollectionRecord>;
  /** Names of the chains that are served; null: not known. */
  readonly servedChains: () => readonly string[] | null;
}

const HELP = `usage: operator collections link --environment E --chain C --contract 0x… --name N [--project P] [--json]
       operator collections list [--project P] [--json]
       operator collections rename --chain C --contract 0x… --name N [--project P] [--json]
       operator collections unlink --chain C --contract 0x… [--project P] [--json]
       operator collections relink --environment E --chain C --contract 0x… [--project P] [--json]
       operator collections move --environment E --chain C --contract 0x… [--project P] [--json]
                                                                (npm run collections -- …)

A collection is a contract of a chain that is linked to a project. A contract is linked to one project at most; which one
has it is not told to the others.

  link    links a contract to an environment of a project
  list    the collections of a project, those that it has unlinked too
  rename  gives a collection another name
  unlink  takes it from the project: any project may link it then, and pending mints of the project end as failed
  relink  links one again that the project has unlinked, or moves it to another of its environments
  move    moves it from the project that has it, whichever that is, to an environment of this project

  --project demo     --environment E  name or id
  --chain C          name of the chain, as paths of the chain interface have it
  --contract 0x…     address of the contract, 40 hexadecimal digits
  --json             JSON, one a line

Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a stack that runs here (.playline/stack.json).`;

const text = { type: 'string' } as const;
const OF_PROJECT = { project: { type: 'string', default: 'demo' }, json: { type: 'boolean', default: false } } as const;
const OF_CONTRACT = { ...OF_PROJECT, chain: text, contract: text } as const;

type Change = (store: RecordStore<CollectionRecord>) => Promise<CollectionRecord>;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly prepare: (values: Values) => (context: CollectionsContext, terminal: Terminal) => Promise<void>;
}

const WORDS: Readonly<Record<string, Word>> = {
  link: { options: { ...OF_CONTRACT, environment: text, name: text }, prepare: prepareLink },
  list: { options: OF_PROJECT, prepare: prepareList },
  rename: {
    options: { ...OF_CONTRACT, name: text },
    prepare: (values) => {
      const name = nameOf(values);
      return changing(values, (own) => (store) => renameCollection({ store }, { ...own, name }));
    },
  },
  unlink: {
    options: OF_CONTRACT,
    prepare: (values) => changing(values, (own) => (store) => unlinkCollection({ store }, own)),
  },
  relink: {
    options: { ...OF_CONTRACT, environment: text },
    prepare: (values) => prepareInEnvironment(values, relinkCollection),
  },
  move: {
    options: { ...OF_CONTRACT, environment: text },
    prepare: (values) => prepareInEnvironment(values, moveCollection),
  },
};

export function createCollectionsCommand(context: CollectionsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    await word.prepare(parseOptions(rest, word.options).values)(context, terminal);
    return EXIT.ok;
  };
  const summary = 'link contracts of chains to projects; list, rename, unlink and move them';
  return { name: 'collections', summary, help: HELP, run };
}

function prepareLink(values: Values): ReturnType<Word['prepare']> {
  const [wanted, contract, name] = [environmentOf(values), contractOf(values), nameOf(values)];
  return async (context, terminal) => {
    const { project, environment } = await requireEnvironment(context, wanted);
    const owner = { projectId: project.id, environmentId: environment.id };
    const linked = await withRecords(context.collections, (store) =>
      linkCollection({ store, servedChains: context.servedChains() }, { ...contract, ...owner, name }),
    );
    terminal.result(toLine(linked, values));
  };
}

function prepareInEnvironment(values: Values, change: typeof relinkCollection): ReturnType<Word['prepare']> {
  const [wanted, contract] = [environmentOf(values), contractOf(values)];
  return async (context, terminal) => {
    const { project, environment } = await requireEnvironment(context, wanted);
    const own = { ...contract, projectId: project.id, environmentId: environment.id };
    const servedChains = context.servedChains();
    const linked = await withRecords(context.collections, (store) => change({ store, servedChains }, own));
    terminal.result(toLine(linked, values));
  };
}

function prepareList(values: Values): ReturnType<Word['prepare']> {
  const wanted = projectOf(values);
  return async (context, terminal) => {
    const projectId = await requireProjectId(context, wanted);
    const records = await withRecords(context.collections, (store) => store.readAll());
    for (const record of collectionsOf(records, projectId)) terminal.result(toLine(record, values));
  };
}

/** Changes a collection of the project, which may be archived. */
function changing(values: Values, change: (own: CollectionName) => Change): ReturnType<Word['prepare']> {
  const [wanted, contract] = [projectOf(values), contractOf(values)];
  return async (context, terminal) => {
    const own = { ...contract, projectId: await requireProjectId(context, wanted) };
    terminal.result(toLine(await withRecords(context.collections, change(own)), values));
  };
}

function nameOf(values: Values): string {
  const name = textOf(values, 'name');
  if (name === undefined) throw new UsageError('--name: expected what the collection is called');
  return name;
}

function toLine(record: CollectionRecord, values: Values): string {
  if (values.json === true) return JSON.stringify(record);
  const { chain, contractAddress, environmentId, name, state, changedAt, changedBy } = record;
  const changed = `changed ${new Date(changedAt).toISOString()} by ${changedBy}`;
  return `${chain}  ${contractAddress}  ${environmentId}  ${name}  ${state}  ${changed}`;
}
