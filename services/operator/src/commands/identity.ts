import { Option } from '@commander-js/extra-typings';
import { IDENTITY_KINDS } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import {
  type CreateCommand,
  command,
  endWith,
  type JsonOption,
  jsonCommand,
  jsonOption,
  numberFrom,
  printResult,
  type Terminal,
  wholeNumberFrom,
  yesOption,
} from '../command.ts';
import { hidingArguments, querySecondsOption } from '../identity/context.ts';
import { members, resolve } from '../identity/resolve.ts';
import { environmentOption, idHelp, keyHelp, projectOption, subjectCommand } from '../identity/subject.ts';
import { listSuspects, ruleOn, type UnlinkContext, unlink } from '../identity/unlink.ts';
import { LINKS_MAX, why } from '../identity/why.ts';
import { assertNew, type RebuiltIdentity, rebuildIdentity } from '../rebuild/rebuild-identity.ts';
import { type StoresContext, withPeople, withStores } from '../rebuild/with-stores.ts';

export interface IdentityContext extends StoresContext, UnlinkContext {
  readonly generation: number;
}

const waitSeconds = () =>
  new Option('--wait-seconds <number>', 'seconds to wait for the decision of the linkers, at most 600')
    .argParser(numberFrom(1, 600))
    .default(30);

const repeatable = <const F extends string>(flags: F, description: string) =>
  new Option(flags, `${description}; may be repeated`).argParser(
    (value: string, before: string[] | undefined): string[] | undefined => [...(before ?? []), value],
  );

const ABOUT = `
Select an identity by --kind and --id, or by --key. Needs REDIS_URL, IDENTITY_PEPPER for --id, and the settings that
each command lists; or a local stack.

Exit codes: 0 success, 1 failed or nothing changed, 2 invalid arguments or a missing setting, 3 a store does not
respond, Redis is incomplete, or the linkers did not decide in time, 4 init was refused because Redis has lost its data.`;

const RESOLVE = '\nNeeds CLICKHOUSE_URL with its account.';

const MEMBERS = `
--raw needs CLICKHOUSE_URL with its account. It reads the keys of all events: 60 MB and half a second for two million
events.`;

const WHY = `
Shows the links in log order: time, both sides, outcome and reason, message, trace, and the position of the link fact
(generation/partition/offset and step). With a second identity: the chain of links between both identities or, if
they belong to two persons, the links that were requested between those.

Needs CLICKHOUSE_URL with its account. Reads the keys of all decisions in the environment: 33 MB and 30 ms for a million
decisions, a second for a person with a thousand identities.`;

const UNLINK = `
The identities become a separate person. Shows which identities move and which stay, prompts for confirmation, and
waits for the decision of the linkers; an erasure that holds the person delays it. Earlier messages do not merge
the persons again, even after a rebuild; later messages may. Events do not change: queries show the split.

Pass one --kind per --id, or a single --kind for all. Also needs KAFKA_BROKERS and SCHEMA_REGISTRY_URL.`;

const SUSPECTS = `
An id that links more than 20 anonymous ids within 24 hours is held, because it is probably a placeholder: further links
are refused (reason suspect) until an operator decides. identity members --key shows what it has linked.`;

const REBUILD = `
Restores fences, graph, consents and holds, and then writes the epoch, for which linkers and gateways wait. Safe to repeat
after an interruption. Refused while there is an epoch: the graph is then complete and in use. It does not restore access
keys: use npm run keys -- rebuild, or npm run rebuild for everything.

Needs KAFKA_BROKERS, SCHEMA_REGISTRY_URL, CLICKHOUSE_URL with its account, and the linkers' LINK_TOPIC_GENERATION.`;

export const createIdentityCommand =
  (context: IdentityContext): CreateCommand =>
  (terminal) => {
    const identity = command(
      'identity',
      'show which identities are one person and why, split a wrong merge, set up or rebuild the graph',
    )
      .addCommand(
        subjectCommand('resolve', 'show the person of an identity in Redis, and whether the tables agree')
          .addOption(jsonOption())
          .addHelpText('after', RESOLVE)
          .action((options) => resolve(context, options, terminal)),
      )
      .addCommand(
        subjectCommand('members', 'list all identities of a person: key, kind and time of the first link')
          .option('--raw', 'include the ids that clients sent, if events contain them; ids are personal data')
          .addOption(querySecondsOption())
          .addOption(jsonOption())
          .addHelpText('after', MEMBERS)
          .action((options) => members(context, options, terminal)),
      )
      .addCommand(createWhy(context, terminal))
      .addCommand(createUnlink(context, terminal))
      .addCommand(
        command('init', 'create the epoch of the identity graph in Redis, for a new deployment')
          .addHelpText('after', '\nSafe to repeat. Refused if log or tables have data: run npm run rebuild instead.')
          .action(() => init(context, terminal)),
      )
      .addCommand(
        rebuildCommand('rebuild', 'restore the identity graph of an empty Redis')
          .addHelpText('after', REBUILD)
          .action((options) => rebuild(context, options, terminal)),
      )
      .addCommand(createSuspects(context, terminal))
      .addHelpText('after', ABOUT);
    return hidingArguments(identity);
  };

const createWhy = (context: IdentityContext, terminal: Terminal) =>
  subjectCommand('why', 'list the links that were requested for a person, and their outcomes')
    .addOption(new Option('--other-kind <kind>', 'kind of a second id').choices(IDENTITY_KINDS))
    .option('--other-id <id>', 'second id')
    .option('--other-key <hex>', 'second identity key')
    .addOption(
      new Option('--limit <number>', `number of newest links to show, at most ${LINKS_MAX}`)
        .argParser(wholeNumberFrom(1, LINKS_MAX))
        .default(50),
    )
    .addOption(querySecondsOption())
    .addOption(jsonOption())
    .addHelpText('after', WHY)
    .action((options) => why(context, options, terminal));

const createUnlink = (context: IdentityContext, terminal: Terminal) =>
  jsonCommand('unlink', 'split identities from a person with whom they were wrongly merged')
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(projectOption())
    .addOption(repeatable('--kind <kind>', `kind of an id: ${IDENTITY_KINDS.join(', ')}`))
    .addOption(repeatable('--id <id>', idHelp))
    .addOption(repeatable('--key <hex>', keyHelp))
    .addOption(waitSeconds())
    .addOption(yesOption())
    .addHelpText('after', UNLINK)
    .action(async (options) => endWith(await unlink(context, options, terminal)));

function createSuspects(context: IdentityContext, terminal: Terminal) {
  const ruling = (verdict: 'allow' | 'block', description: string) =>
    subjectCommand(verdict, description)
      .addOption(waitSeconds())
      .addOption(querySecondsOption())
      .addOption(yesOption())
      .addOption(jsonOption())
      .action(async (options) => endWith(await ruleOn(context, { ...options, verdict }, terminal)));
  const suspects = command('suspects', 'list, allow and block ids that link too many anonymous ids')
    .addCommand(
      jsonCommand('list', 'list held, allowed and blocked ids by key')
        .addOption(environmentOption().makeOptionMandatory())
        .addOption(projectOption())
        .action((options) => listSuspects(context, options, terminal)),
    )
    .addCommand(ruling('allow', 'allow an id to link again, and retry its refused links'))
    .addCommand(ruling('block', 'block an id from linking more identities; existing links are kept'))
    .addHelpText('after', SUSPECTS);
  return hidingArguments(suspects);
}

export const rebuildCommand = (name: string, description: string) =>
  jsonCommand(name, description)
    .option('--linker-group <name>', 'consumer group of the linkers', GROUPS.linker)
    .option('--writer-group <name>', 'consumer group of the event writer', GROUPS.writer)
    .option('--decide-again', 'rebuild even if the linkers have never committed an offset');

export interface RebuildOptions extends JsonOption {
  readonly linkerGroup: string;
  readonly writerGroup: string;
  readonly decideAgain?: boolean | undefined;
}

async function init(context: IdentityContext, terminal: Terminal): Promise<void> {
  await withPeople(context, async (people) => {
    if ((await people.readEpoch()) === null) await assertNew(context);
    terminal.result(`epoch ${await people.rebuild.mintEpoch()}`);
  });
}

export async function rebuild(context: IdentityContext, options: RebuildOptions, terminal: Terminal): Promise<void> {
  const { linkerGroup, writerGroup, decideAgain = false } = options;
  const progress = { linkerGroup, generation: context.generation, decideAgain };
  const rebuilt = await withStores(context, { writerGroup, onProgress: terminal.progress }, (sources, people) =>
    rebuildIdentity(sources, people, progress),
  );
  printResult(terminal, options, rebuilt, toLines(rebuilt));
}

function toLines({ graph, consents, holds, epoch }: RebuiltIdentity): string[] {
  const { fences, fromTable, fromLog, erased, unlinkSides, decisions, partitions } = graph;
  return [
    `fences      ${fences} set`,
    `identities  ${fromTable} from the table, ${fromLog} from ${decisions} later decisions of the log, ${erased} erased omitted`,
    `unlinks     ${unlinkSides} sides of identities`,
    `links       ${partitions} partitions resume at the committed offsets of the linkers`,
    `consents    ${consents.applied + consents.superseded} changes read, ${consents.fenced} erased`,
    `holds       ${holds} erasures in progress`,
    `epoch       ${epoch}`,
  ];
}
