import { awaitStore } from '../await-store.ts';
import { type Command, EXIT, type ExitCode, parseOptions, type Terminal, textOf, UsageError } from '../command.ts';
import { assertNew } from '../rebuild/assert-new.ts';
import { type RebuiltIdentity, rebuildIdentity } from '../rebuild/rebuild-identity.ts';
import { answers, type StoresContext, withStores } from '../rebuild/with-stores.ts';

export interface IdentityContext extends StoresContext {
  /** LINK_TOPIC_GENERATION */
  readonly generation: number;
}

const HELP = `usage: operator identity init
       operator identity rebuild [options]          (npm run identity -- …)

  init      mints the epoch of the identity graph in Redis, for a new deployment; safe to repeat. Refused where there is
            none and log or tables hold data: that Redis has lost what it held, and is rebuilt, not declared new
  rebuild   puts back what an emptied Redis held: fences, graph, consents, holds; the epoch last, so that linkers and
            gateways refuse until all is there. Nothing else need be stopped. Killed half-way it is simply run again.
            Refused while there is an epoch: the graph is whole and in use then

  --linker-group identity-linker   consumer group of the linkers
  --writer-group event-writer      consumer group of the event writer
  --decide-again                   rebuild although the linkers have never committed anything
  --json                           the result as one JSON line

Access keys are no part of it: npm run keys -- rebuild, or npm run rebuild for everything.
init needs REDIS_URL, and asks log and tables where it knows them; rebuild needs REDIS_URL, KAFKA_BROKERS,
SCHEMA_REGISTRY_URL, CLICKHOUSE_URL with its account, and LINK_TOPIC_GENERATION where the linkers have one; or a stack
that runs here (.playline/stack.json).`;

/** Of `rebuild`. */
export const REBUILD_OPTIONS = {
  'linker-group': { type: 'string', default: 'identity-linker' },
  'writer-group': { type: 'string', default: 'event-writer' },
  'decide-again': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseOptions>['values'];

export function createIdentityCommand(context: IdentityContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, REBUILD_OPTIONS, 1);
    if (words[0] === 'init') await init(context, terminal);
    else if (words[0] === 'rebuild') await rebuild(context, values, terminal);
    else throw new UsageError('expected init or rebuild');
    return EXIT.ok;
  };
  return { name: 'identity', summary: 'set up the identity graph, or rebuild it', help: HELP, run };
}

async function init(context: IdentityContext, terminal: Terminal): Promise<void> {
  const people = await context.openPeople();
  try {
    await awaitStore('Redis', () => answers(people));
    if ((await people.readEpoch()) === null) await assertNew(context);
    terminal.result(`epoch ${await people.rebuild.mintEpoch()}`);
  } finally {
    await people.close();
  }
}

async function rebuild(context: IdentityContext, values: Values, terminal: Terminal): Promise<void> {
  const { generation } = context;
  const linkerGroup = textOf(values, 'linker-group') ?? REBUILD_OPTIONS['linker-group'].default;
  const writerGroup = textOf(values, 'writer-group') ?? REBUILD_OPTIONS['writer-group'].default;
  const progress = { linkerGroup, generation, decideAgain: values['decide-again'] === true };
  const rebuilt = await withStores(context, { writerGroup, onProgress: terminal.progress }, (sources, people) =>
    rebuildIdentity(sources, people, progress),
  );
  for (const line of values.json === true ? [JSON.stringify(rebuilt)] : toLines(rebuilt)) terminal.result(line);
}

function toLines({ graph, consents, holds, epoch }: RebuiltIdentity): string[] {
  const { fences, fromTable, fromLog, erased, decisions, partitions } = graph;
  return [
    `fences      ${fences} set`,
    `identities  ${fromTable} from the table, ${fromLog} from ${decisions} later decisions of the log, ${erased} erased left out`,
    `links       ${partitions} partitions go on behind what their linkers committed`,
    `consents    ${consents.applied + consents.superseded} changes read, ${consents.fenced} of them erased`,
    `holds       ${holds} erasures in progress`,
    `epoch       ${epoch}`,
  ];
}
