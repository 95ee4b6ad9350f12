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
import { hideArguments, querySecondsOption } from '../identity/context.ts';
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
  new Option('--wait-seconds <number>', 'time to wait for the linkers, in seconds, up to 600')
    .argParser(numberFrom(1, 600))
    .default(30);

const repeatable = <const F extends string>(flags: F, description: string) =>
  new Option(flags, `${description} (repeatable)`).argParser(
    (value: string, before: string[] | undefined): string[] | undefined => [...(before ?? []), value],
  );

const ABOUT = `
Select an identity with --kind and --id, or with --key. Requires REDIS_URL, IDENTITY_PEPPER for --id, and the settings
listed under each command; or a local stack.

Exit codes: 0 success, 1 failed or nothing changed, 2 invalid arguments or missing setting, 3 store not responding,
Redis incomplete or linkers timed out, 4 init refused because Redis has lost its data.`;

const RESOLVE = '\nRequires CLICKHOUSE_URL and its credentials.';

const MEMBERS = `
With --raw, requires CLICKHOUSE_URL and its credentials, and scans the keys of all events: about 60 MB and half a second per
two million events.`;

const WHY = `
Shows the links in log order, with their time, both identities, outcome, reason, message, trace, and the position of the
link fact (generation/partition/offset and step). With a second identity, shows the chain of links between both
identities or, if they belong to different persons, all links requested between the two persons.

Requires CLICKHOUSE_URL and its credentials. Scans the keys of all decisions in the environment: about 33 MB and 30 ms per
million decisions, and up to a second for a person with a thousand identities.`;

const UNLINK = `
The selected identities become a separate person. The command shows which identities move and which stay, prompts for
confirmation, and waits for the linkers, which may themselves wait for an erasure that holds the person. Earlier
messages do not merge the persons again, even after a rebuild, but later messages can. Events are not changed; queries
return the new persons.

Pass one --kind per --id, or one --kind for all ids. Also requires KAFKA_BROKERS and SCHEMA_REGISTRY_URL.`;

const SUSPECTS = `
An id that links more than 20 anonymous ids within 24 hours is probably a placeholder. Further links are refused
with the reason suspect until an operator allows or blocks the id. To list its links, use identity members --key.`;

const REBUILD = `
Restores fences, the graph, consents and holds, and then writes the epoch that linkers and gateways are waiting for. To
resume after an interruption, run the command again. Fails if Redis has an epoch, because the graph is then in use.
Access keys are not restored: use npm run keys -- rebuild, or npm run rebuild for all data.

Requires KAFKA_BROKERS, SCHEMA_REGISTRY_URL, CLICKHOUSE_URL and its credentials, and the linkers' LINK_TOPIC_GENERATION.`;

export const createIdentityCommand =
  (context: IdentityContext): CreateCommand =>
  (terminal) => {
    const identity = command(
      'identity',
      'inspect and rebuild the identity graph, and split persons that were wrongly merged',
    )
      .addCommand(
        subjectCommand('resolve', "show an identity's person in Redis, and compare it with the tables")
          .addOption(jsonOption())
          .addHelpText('after', RESOLVE)
          .action((options) => resolve(context, options, terminal)),
      )
      .addCommand(
        subjectCommand('members', 'list all identities of a person')
          .option('--raw', 'include raw ids from events; raw ids are personal data')
          .addOption(querySecondsOption())
          .addOption(jsonOption())
          .addHelpText('after', MEMBERS)
          .action((options) => members(context, options, terminal)),
      )
      .addCommand(createWhy(context, terminal))
      .addCommand(createUnlink(context, terminal))
      .addCommand(
        command('init', 'initialize the identity graph of a new deployment')
          .addHelpText(
            'after',
            '\nCreates the epoch in Redis. Fails if the log or the tables contain data: use npm run rebuild instead.',
          )
          .action(() => init(context, terminal)),
      )
      .addCommand(
        rebuildCommand('rebuild', 'restore the identity graph into an empty Redis')
          .addHelpText('after', REBUILD)
          .action((options) => rebuild(context, options, terminal)),
      )
      .addCommand(createSuspects(context, terminal))
      .addHelpText('after', ABOUT);
    return hideArguments(identity);
  };

const createWhy = (context: IdentityContext, terminal: Terminal) =>
  subjectCommand('why', 'list the links requested for a person, with their outcomes')
    .addOption(new Option('--other-kind <kind>', 'kind of the second id').choices(IDENTITY_KINDS))
    .option('--other-id <id>', 'second id')
    .option('--other-key <hex>', 'second identity key')
    .addOption(
      new Option('--limit <number>', `number of links to show, newest first, up to ${LINKS_MAX}`)
        .argParser(wholeNumberFrom(1, LINKS_MAX))
        .default(50),
    )
    .addOption(querySecondsOption())
    .addOption(jsonOption())
    .addHelpText('after', WHY)
    .action((options) => why(context, options, terminal));

const createUnlink = (context: IdentityContext, terminal: Terminal) =>
  jsonCommand('unlink', 'split identities from a person they were wrongly merged with')
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(projectOption())
    .addOption(repeatable('--kind <kind>', `identity kind: ${IDENTITY_KINDS.join(', ')}`))
    .addOption(repeatable('--id <id>', idHelp))
    .addOption(repeatable('--key <hex>', keyHelp))
    .addOption(waitSeconds())
    .addOption(yesOption())
    .addHelpText('after', UNLINK)
    .action(async (options) => endWith(await unlink(context, options, terminal)));

function createSuspects(context: IdentityContext, terminal: Terminal) {
  const verdictCommand = (verdict: 'allow' | 'block', description: string) =>
    subjectCommand(verdict, description)
      .addOption(waitSeconds())
      .addOption(querySecondsOption())
      .addOption(yesOption())
      .addOption(jsonOption())
      .action(async (options) => endWith(await ruleOn(context, { ...options, verdict }, terminal)));
  const suspects = command('suspects', 'manage ids that link too many anonymous ids')
    .addCommand(
      jsonCommand('list', 'list the keys of held, allowed and blocked ids')
        .addOption(environmentOption().makeOptionMandatory())
        .addOption(projectOption())
        .action((options) => listSuspects(context, options, terminal)),
    )
    .addCommand(verdictCommand('allow', 'allow an id to link identities, and retry its refused links'))
    .addCommand(verdictCommand('block', 'block an id from linking more identities; existing links are kept'))
    .addHelpText('after', SUSPECTS);
  return hideArguments(suspects);
}

export const rebuildCommand = (name: string, description: string) =>
  jsonCommand(name, description)
    .option('--linker-group <name>', 'consumer group of the linkers', GROUPS.linker)
    .option('--writer-group <name>', 'consumer group of the event writer', GROUPS.writer)
    .option('--decide-again', 'rebuild even if the linkers have not committed any offsets');

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
    `identities  ${fromTable} from the table, ${fromLog} from ${decisions} newer decisions in the log, ${erased} erased and skipped`,
    `unlinks     ${unlinkSides} identities on either side of a split`,
    `links       ${partitions} partitions resume at the linkers' committed offsets`,
    `consents    ${consents.applied + consents.superseded} changes read, ${consents.fenced} erased`,
    `holds       ${holds} erasures in progress`,
    `epoch       ${epoch}`,
  ];
}
