import { Option } from '@commander-js/extra-typings';
import { auditGroupOf, GROUPS, parkedGroupOf } from '@playline/runtime';
import { type GroupOffsets, type GroupPartition, isDecisionFor, toFindingText } from '@playline/stream';
import { awaitStore, withOpened } from '../await-store.ts';
import {
  type CreateCommand,
  command,
  EXIT,
  type ExitCode,
  endWith,
  type Terminal,
  UsageError,
  wholeNumberFrom,
} from '../command.ts';
import { needsDecision, type Plan, planDecision, type StartPoint } from '../offsets/plan.ts';
import { toTable } from '../table.ts';

export interface OffsetsContext {
  readonly openOffsets: () => Promise<GroupOffsets>;
}

/** Every consumer group of a deployment. */
export const OFFSET_GROUPS: readonly string[] = [
  ...[GROUPS.writer, auditGroupOf(GROUPS.writer), GROUPS.linker, parkedGroupOf(GROUPS.linker)],
  ...[GROUPS.activityWriter, GROUPS.minter, GROUPS.eraser],
];

const ABOUT = `
A consumer does not read a partition whose log is not the one that it has read: the log lost its end (a single broker that
lost power, an election of a replica that was behind), was replaced, or retention deleted link facts that were not read.
It also does not continue from an offset that another tool has committed, which may skip records. That partition stays
paused until an operator decides. All others continue.`;

const LIST = `
Lists the groups
${OFFSET_GROUPS.join(', ')},
unless --group names others. Exit code 1 if a partition needs a decision, or a named group has committed nothing.`;

const ACCEPT = `
Shows first which records are read again and which are skipped. Running consumers follow within seconds; stopped ones when
they start.

--from:
  earliest-unread  the first record that was not read, if the epochs of the log's leaders show it; otherwise the first
                   record of the log
  end              only records from now on
  OFFSET           this offset. Also allowed for a partition that needs no decision, to read records again or to skip
                   them. The consumers of the group must be stopped for that, and are started afterwards

For the group of the identity linker read its README first: a replaced link topic also needs another LINK_TOPIC_GENERATION.`;

const offsetNumber = wholeNumberFrom(0, Number.MAX_SAFE_INTEGER);
const toFrom = (text: string): StartPoint => (text === 'earliest-unread' || text === 'end' ? text : offsetNumber(text));

const awaitOffsets = (offsets: GroupOffsets) =>
  awaitStore('Kafka', async () => (await offsets.list('operator')).length === 0);

export const createOffsetsCommand =
  ({ openOffsets }: OffsetsContext): CreateCommand =>
  (terminal) => {
    const run = async (act: (offsets: GroupOffsets) => Promise<ExitCode>) =>
      endWith(await withOpened(await openOffsets(), awaitOffsets, act));
    return command('offsets', 'show the offsets that groups have committed, and decide where reading continues')
      .addCommand(
        command('list', 'list committed offsets beside the ends of the log, and what blocks a partition')
          .option('--group <names>', 'consumer groups, separated by commas')
          .option('--json', 'print the result as one JSON line')
          .addHelpText('after', LIST)
          .action((options) => run((offsets) => list(offsets, options, terminal))),
      )
      .addCommand(
        command('accept', 'continue reading a partition with the log as it is')
          .requiredOption('--group <name>', 'consumer group')
          .requiredOption('--topic <topic>', 'topic of the partition')
          .addOption(
            new Option('--partition <number>', 'number of the partition').argParser(offsetNumber).makeOptionMandatory(),
          )
          .addOption(
            new Option('--from <position>', 'earliest-unread, end or an offset')
              .argParser(toFrom)
              .default('earliest-unread' as StartPoint),
          )
          .option('--yes', 'skip unread records, or move the offset of a partition that needs no decision')
          .addHelpText('after', ACCEPT)
          .action((options) => run((offsets) => accept(offsets, options, terminal))),
      )
      .addHelpText('after', ABOUT);
  };

interface Wanted {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly from: StartPoint;
  readonly yes?: boolean | undefined;
}

/** Why a partition needs a decision; null when it does not. */
function blockerOf(at: GroupPartition): string | null {
  if (!needsDecision(at)) return null;
  const isDecided = at.decision !== null && isDecisionFor(at.decision, at);
  const words = toFindingText(at.finding, at.committed);
  return isDecided ? `${words}; decided: its consumer continues at ${at.decision!.from}` : words;
}

async function list(
  offsets: GroupOffsets,
  options: { readonly group?: string | undefined; readonly json?: boolean | undefined },
  terminal: Terminal,
): Promise<ExitCode> {
  const groups = options.group?.split(',') ?? OFFSET_GROUPS;
  const found: (GroupPartition & { group: string; obstacle: string | null })[] = [];
  for (const group of groups)
    for (const each of await offsets.list(group)) found.push({ group, ...each, obstacle: blockerOf(each) });
  // A mistyped name must not look like a group without problems, but the groups of a new deployment may have no commits
  // yet.
  const absent = groups.filter((name) => !found.some(({ group }) => group === name));
  for (const name of absent) terminal.progress(`group ${name} has committed nothing`);
  if (options.json === true) terminal.result(JSON.stringify({ partitions: found }));
  else for (const line of toLines(found)) terminal.result(line);
  const isNamed = options.group !== undefined;
  const isFree = !(isNamed && absent.length > 0) && found.every(({ obstacle }) => obstacle === null);
  return isFree ? EXIT.ok : EXIT.failed;
}

function toLines(found: readonly (GroupPartition & { group: string; obstacle: string | null })[]): string[] {
  const head = ['group', 'topic', 'part', 'committed', 'log start', 'log end', 'blocked by'];
  const rows = found.map(({ group, topic, partition, committed, start, end, obstacle }) =>
    [group, topic, partition, committed, start, end, obstacle ?? '-'].map(String),
  );
  return toTable(head, rows);
}

async function accept(offsets: GroupOffsets, wanted: Wanted, terminal: Terminal): Promise<ExitCode> {
  const { group, topic, partition, from, yes = false } = wanted;
  const found = (await offsets.list(group)).find((each) => each.topic === topic && each.partition === partition);
  if (found === undefined) throw new UsageError(`group ${group} has committed nothing of ${topic}/${partition}`);
  const isMove = !needsDecision(found);
  if (isMove && typeof from !== 'number') {
    const words = toFindingText(found.finding, found.committed);
    terminal.progress(
      `${topic}/${partition}: nothing to decide, ${words}; --from OFFSET moves the offset nevertheless`,
    );
    return EXIT.failed;
  }
  const plan = planWithin(found, from);
  terminal.result(`${topic}/${partition} of ${group}: ${toFindingText(found.finding, found.committed)}.`);
  for (const sentence of plan.description) terminal.result(sentence);
  if ((plan.skipped > 0 || isMove) && !yes) {
    const what = plan.skipped > 0 ? 'skip these records' : 'continue there';
    terminal.progress(`nothing was changed: use --yes to ${what}`);
    return EXIT.failed;
  }
  if (isMove) return await move(offsets, { wanted, plan }, terminal);
  await offsets.decide(group, { topic, partition }, plan.decision);
  terminal.result('Decided. The consumer follows within seconds, or when it is started.');
  return EXIT.ok;
}

/**
 * Running consumers do not look for a decision. So the group's offset is set, which Kafka allows only while the group
 * has no member.
 */
async function move(
  offsets: GroupOffsets,
  { wanted: { group, topic, partition }, plan }: { wanted: Wanted; plan: Plan },
  terminal: Terminal,
): Promise<ExitCode> {
  if (!(await offsets.move(group, { topic, partition }, plan.decision))) {
    terminal.progress(
      `nothing was changed: stop every consumer of the group ${group} first, and start them afterwards`,
    );
    return EXIT.failed;
  }
  terminal.result('Committed. The consumers continue there when they are started.');
  return EXIT.ok;
}

/** @throws UsageError for an offset that the log does not have */
function planWithin(found: GroupPartition, from: StartPoint) {
  try {
    return planDecision(found, from, Date.now());
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}
