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
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
  UsageError,
  wholeNumberFrom,
} from '../command.ts';
import { needsDecision, type Plan, planDecision, type StartPoint } from '../offsets/plan.ts';
import { toTable } from '../terminal.ts';

export interface OffsetsContext {
  readonly openOffsets: () => Promise<GroupOffsets>;
}

/** All consumer groups of a deployment. */
export const OFFSET_GROUPS: readonly string[] = [
  ...[GROUPS.writer, auditGroupOf(GROUPS.writer), GROUPS.linker, parkedGroupOf(GROUPS.linker)],
  ...[GROUPS.activityWriter, GROUPS.minter, GROUPS.eraser],
];

const ABOUT = `
A consumer pauses a partition whose log differs from the log that it has read: the log was truncated (power loss of a
single broker, unclean leader election), was replaced, or link facts expired before they were read. It also pauses at
an offset that another tool has committed, which may skip records. That partition stays paused until an operator decides.
All others continue.`;

const LIST = `
Lists the groups
${OFFSET_GROUPS.join(', ')},
unless --group names others. Exit code 1 if a partition needs a decision, or a named group has committed nothing.`;

const ACCEPT = `
Shows which records are read again and which are skipped. Running consumers apply the decision within seconds.

--from:
  earliest-unread  the first unread record by the leader epochs of the log; without them the first record of the log
  end              only new records
  OFFSET           this offset. Without a pending decision it moves the group, to read records again or to skip them:
                   stop the consumers of the group first

For the identity linker, read its README first: a replaced link topic also needs a new LINK_TOPIC_GENERATION.`;

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
        jsonCommand('list', 'list committed offsets, log bounds, and what blocks a partition')
          .option('--group <names>', 'consumer groups, separated by commas')
          .addHelpText('after', LIST)
          .action((options) => run((offsets) => list(offsets, options, terminal))),
      )
      .addCommand(
        command('accept', 'resume reading a partition from the current log')
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

/** Why a partition needs a decision, or null. */
function blockerOf(found: GroupPartition): string | null {
  if (!needsDecision(found)) return null;
  const isDecided = found.decision !== null && isDecisionFor(found.decision, found);
  const finding = toFindingText(found.finding, found.committed);
  return isDecided ? `${finding}; decided: its consumer continues at ${found.decision!.from}` : finding;
}

async function list(
  offsets: GroupOffsets,
  options: JsonOption & { readonly group?: string | undefined },
  terminal: Terminal,
): Promise<ExitCode> {
  const groups = options.group?.split(',') ?? OFFSET_GROUPS;
  const found: (GroupPartition & { group: string; obstacle: string | null })[] = [];
  for (const group of groups)
    for (const each of await offsets.list(group)) found.push({ group, ...each, obstacle: blockerOf(each) });
  // A mistyped name must not appear healthy. Groups of a new deployment may lack commits.
  const absent = groups.filter((name) => !found.some(({ group }) => group === name));
  for (const name of absent) terminal.progress(`group ${name} has committed nothing`);
  printResult(terminal, options, { partitions: found }, toLines(found));
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
  if (found === undefined) throw new UsageError(`group ${group} has no committed offset for ${topic}/${partition}`);
  const isMove = !needsDecision(found);
  if (isMove && typeof from !== 'number') {
    const finding = toFindingText(found.finding, found.committed);
    terminal.progress(`${topic}/${partition}: nothing to decide, ${finding}; --from OFFSET moves the group`);
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
  if (isMove) return await move(offsets, wanted, plan, terminal);
  await offsets.decide(group, { topic, partition }, plan.decision);
  terminal.result('Decision stored. The consumer applies it within seconds, or when it is started.');
  return EXIT.ok;
}

/** Sets the offset of a group without running consumers, which do not read decisions. Kafka allows this for a group without members. */
async function move(offsets: GroupOffsets, { group, topic, partition }: Wanted, plan: Plan, terminal: Terminal) {
  if (!(await offsets.move(group, { topic, partition }, plan.decision))) {
    terminal.progress(`nothing was changed: stop every consumer of ${group} first, and start them afterwards`);
    return EXIT.failed;
  }
  terminal.result('Offset committed. The consumers resume at it when they are started.');
  return EXIT.ok;
}

/** @throws UsageError for an offset that the log does not contain */
function planWithin(found: GroupPartition, from: StartPoint) {
  try {
    return planDecision(found, from, Date.now());
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}
