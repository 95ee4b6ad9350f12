import { IDENTITY_KINDS } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import {
  type Command,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  type Values,
  wordOf,
} from '../command.ts';
import { members, resolve } from '../identity/resolve.ts';
import { suspects } from '../identity/suspects.ts';
import { type UnlinkContext, unlink } from '../identity/unlink.ts';
import { why } from '../identity/why.ts';
import { assertNew } from '../rebuild/assert-new.ts';
import { type RebuiltIdentity, rebuildIdentity } from '../rebuild/rebuild-identity.ts';
import { type StoresContext, withPeople, withStores } from '../rebuild/with-stores.ts';

export interface IdentityContext extends StoresContext, UnlinkContext {
  /** LINK_TOPIC_GENERATION */
  readonly generation: number;
}

const HELP = `usage: operator identity resolve --environment E (--kind K --id ID | --key HEX)
       operator identity members …as resolve… [--raw]
       operator identity why     …as resolve… [--other-kind K --other-id ID | --other-key HEX] [--limit 50]
       operator identity unlink  …as resolve, several times… [--yes] [--wait-seconds 30]
       operator identity suspects list  --environment E
       operator identity suspects allow|block …as resolve… [--yes] [--wait-seconds 30]
       operator identity init
       operator identity rebuild [options]          (npm run identity -- …)

  resolve   which person an identity belongs to now, as Redis has it, and whether the tables say the same. One that nobody
            has linked is a person of its own
  members   every identity of that person: key, kind, time of its first link
            --raw   also the ids that clients sent, where events still have them. They are personal data
  why       the messages that asked for links of anybody of that person, in the order of the log, what became of each and
            why: time, both sides, message, trace, place of the link fact (generation/partition/offset and step).
            With a second identity: the chain of links from one to the other, or, of two persons, what was asked between
            the two
            --limit 50          the newest so many, 10000 at most

  --environment production, development, or the id of an environment as tables have it: demo-production
  --project demo
  --kind        ${IDENTITY_KINDS.join(', ')}
  --id          as clients send it. It goes into no message of ours but the answer; your shell may remember it
  --key         identity key, 32 hexadecimal digits, as in tables; needs no pepper
  --query-seconds 30   for why and members --raw: a question to the tables that takes longer is given up
  --json        JSON: of resolve one object, else one a line

These three only read. unlink writes:

  unlink    splits identities off that were wrongly merged with the rest of their person: they become one person of their
            own, or stand alone. Shows who leaves and who stays, asks, and waits for the linkers' decision. Messages up to now
            do not join the two again, also after a rebuild; later ones may. Events keep their place: queries show the split
            --kind K --id ID --kind K2 --id ID2 …, one --kind for all ids, --key HEX …
            --yes               without asking
            --wait-seconds 30   for the decision, 600 at most. It is decided all the same when that takes longer: while an
                                erasure holds the person it waits

resolve and members cost Redis two look-ups, and resolve a granule of identity_overrides. why reads the keys of every decision of the environment, since identity_links is in the order of the log: 33 MB and 30 ms for a
million decisions, a second for a person of a thousand identities. members --raw looks through the keys of the events: 60
MB and half a second for two million.

  suspects  ids that have linked more than 20 anonymous ids within 24 hours, as only a placeholder does. They are held:
            further links of them are refused (reason suspect) until you rule. members --key shows what they have linked
            list    held, allowed and blocked ids by key
            allow   the id may link further; its refused links are decided again
            block   the id links nobody any more; identities that it has linked stay together: split them with unlink

  init      mints the epoch of the identity graph in Redis, for a new deployment; safe to repeat. Refused where there is
            none and log or tables hold data: that Redis has lost what it held, and is rebuilt, not declared new
  rebuild   puts back what an emptied Redis held: fences, graph, consents, holds; the epoch last, so that linkers and
            gateways refuse until all is there. Nothing else need be stopped. Killed half-way it is simply run again.
            Refused while there is an epoch: the graph is whole and in use then

  --linker-group ${GROUPS.linker}   consumer group of the linkers
  --writer-group ${GROUPS.writer}      consumer group of the event writer
  --decide-again                   rebuild although the linkers have never committed anything
  --json                           the result as one JSON line

Access keys are no part of it: npm run keys -- rebuild, or npm run rebuild for everything.
resolve, members and why need REDIS_URL, CLICKHOUSE_URL with its account (members for --raw alone), and IDENTITY_PEPPER for
--id; unlink needs REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL, and IDENTITY_PEPPER for --id; init needs REDIS_URL, and asks log and tables where it knows them; rebuild needs REDIS_URL, KAFKA_BROKERS,
SCHEMA_REGISTRY_URL, CLICKHOUSE_URL with its account, and LINK_TOPIC_GENERATION where the linkers have one; or a stack that
runs here (.playline/stack.json).

Exit code: 0 done, 1 it failed, or nothing was split, 2 wrong words, or a setting is missing, 3 a store does not answer,
Redis is not whole, or an unlink was not decided in time, 4 init is refused because Redis has lost what it held.`;

/** Options of `rebuild`. */
export const REBUILD_OPTIONS = {
  'linker-group': { type: 'string', default: GROUPS.linker },
  'writer-group': { type: 'string', default: GROUPS.writer },
  'decide-again': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

type Word = (context: IdentityContext, args: readonly string[], terminal: Terminal) => Promise<ExitCode>;

/** An action that succeeds unless it throws. */
const always =
  (work: (...given: Parameters<Word>) => Promise<void>): Word =>
  async (...given) => {
    await work(...given);
    return EXIT.ok;
  };

const WORDS: Readonly<Record<string, Word>> = {
  resolve: always(resolve),
  members: always(members),
  why: always(why),
  unlink,
  init: always((context, args, terminal) => {
    parseOptions(args, REBUILD_OPTIONS, 1);
    return init(context, terminal);
  }),
  rebuild: always((context, args, terminal) =>
    rebuild(context, parseOptions(args, REBUILD_OPTIONS, 1).values, terminal),
  ),
  suspects,
};

export function createIdentityCommand(context: IdentityContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = ''] = args;
    const word = wordOf(WORDS, name);
    return word(context, args, terminal);
  };
  return {
    name: 'identity',
    summary: 'who is one person, and why; split a wrong merge; set up or rebuild the graph',
    help: HELP,
    run,
  };
}

async function init(context: IdentityContext, terminal: Terminal): Promise<void> {
  await withPeople(context, async (people) => {
    if ((await people.readEpoch()) === null) await assertNew(context);
    terminal.result(`epoch ${await people.rebuild.mintEpoch()}`);
  });
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
  const { fences, fromTable, fromLog, erased, unlinkSides, decisions, partitions } = graph;
  return [
    `fences      ${fences} set`,
    `identities  ${fromTable} from the table, ${fromLog} from ${decisions} later decisions of the log, ${erased} erased left out`,
    `unlinks     ${unlinkSides} sides on which identities stood`,
    `links       ${partitions} partitions go on behind what their linkers committed`,
    `consents    ${consents.applied + consents.superseded} changes read, ${consents.fenced} of them erased`,
    `holds       ${holds} erasures in progress`,
    `epoch       ${epoch}`,
  ];
}
