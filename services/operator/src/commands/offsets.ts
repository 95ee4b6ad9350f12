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
import type { StoreOpeners } from '../store-openers.ts';
import { toTable } from '../terminal.ts';

/** All consumer groups of a deployment. */
export const OFFSET_GROUPS: readonly string[] = [
  ...[GROUPS.writer, auditGroupOf(GROUPS.writer), GROUPS.linker, parkedGroupOf(GROUPS.linker)],
  ...[GROUPS.activityWriter, GROUPS.minter, GROUPS.eraser],
];

const ABOUT = `
A consumer pauses a partition if its log was truncated or replaced (power loss of a single broker, unclean leader
election), if link facts expired before they were read, or if another tool committed an offset, which could skip
records. The partition stays paused until an operator decides where to resume. Other partitions are not affected.`;

const LIST = `
Default groups:
${OFFSET_GROUPS.join(', ')}.

Exits with code 1 if a partition needs a decision, or if a group passed with --group has no committed offsets.`;

const ACCEPT = `
Shows which records will be read again and which will be skipped. Running consumers apply the decision within seconds.

Values of --from:
  earliest-unread  the first unread record according to leader epochs, or the first record of the log if unknown
  end              the end of the log; all unread records are skipped
  OFFSET           a specific offset. Also moves a group that needs no decision: stop the consumers of the group first

If the link topic was replaced, the linkers also need a new LINK_TOPIC_GENERATION: see the README of the identity
linker.`;

const offsetNumber = wholeNumberFrom(0, Number.MAX_SAFE_INTEGER);
const toFrom = (text: string): StartPoint => (text === 'earliest-unread' || text === 'end' ? text : offsetNumber(text));

const awaitOffsets = (offsets: GroupOffsets) =>
  awaitStore('Kafka', async () => (await offsets.list('operator')).length === 0);

export const createOffsetsCommand =
  ({ openOffsets }: Pick<StoreOpeners, 'openOffsets'>): CreateCommand =>
  (terminal) => {
    const run = async (action: (offsets: GroupOffsets) => Promise<ExitCode>) =>
      endWith(await withOpened(await openOffsets(), action, awaitOffsets));
    return command('offsets', 'show committed offsets and resume paused partitions')
      .addCommand(
        jsonCommand('list', 'list committed offsets, log bounds and paused partitions')
          .option('--group <names>', 'comma-separated consumer groups')
          .addHelpText('after', LIST)
          .action((options) => run((offsets) => list(offsets, options, terminal))),
      )
      .addCommand(
        command('accept', 'accept the current log and resume a paused partition')
          .requiredOption('--group <name>', 'consumer group')
          .requiredOption('--topic <topic>', 'topic name')
          .addOption(
            new Option('--partition <number>', 'partition number').argParser(offsetNumber).makeOptionMandatory(),
          )
          .addOption(
            new Option('--from <position>', 'where to resume: earliest-unread, end or an offset')
              .argParser(toFrom)
              .default('earliest-unread' as StartPoint),
          )
          .option('--yes', 'confirm that unread records are skipped, or that a group is moved')
          .addHelpText('after', ACCEPT)
          .action((options) => run((offsets) => accept(offsets, options, terminal))),
      )
      .addHelpText('after', ABOUT);
  };

interface AcceptOptions {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly from: StartPoint;
  readonly yes?: boolean | undefined;
}

/** Returns why a partition needs a decision, or null. */
function blockerOf(found: GroupPartition): string | null {
  if (!needsDecision(found)) return null;
  const isDecided = found.decision !== null && isDecisionFor(found.decision, found);
  const finding = toFindingText(found.finding, found.committed);
  return isDecided ? `${finding}; decided: the consumer resumes at ${found.decision!.from}` : finding;
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
  // A mistyped group must not appear healthy. In a new deployment, default groups may have no commits yet.
  const absent = groups.filter((name) => !found.some(({ group }) => group === name));
  for (const name of absent) terminal.progress(`group ${name} has no committed offsets`);
  const headers = ['group', 'topic', 'partition', 'committed', 'log start', 'log end', 'blocked by'];
  const rows = found.map(({ group, topic, partition, committed, start, end, obstacle }) =>
    [group, topic, partition, committed, start, end, obstacle ?? '-'].map(String),
  );
  printResult(terminal, options, { partitions: found }, toTable(headers, rows));
  const isNamed = options.group !== undefined;
  const isHealthy = !(isNamed && absent.length > 0) && found.every(({ obstacle }) => obstacle === null);
  return isHealthy ? EXIT.ok : EXIT.failed;
}

async function accept(offsets: GroupOffsets, options: AcceptOptions, terminal: Terminal): Promise<ExitCode> {
  const { group, topic, partition, from, yes = false } = options;
  const found = (await offsets.list(group)).find((each) => each.topic === topic && each.partition === partition);
  if (found === undefined) throw new UsageError(`group ${group} has no committed offset for ${topic}/${partition}`);
  const isMove = !needsDecision(found);
  if (isMove && typeof from !== 'number') {
    const finding = toFindingText(found.finding, found.committed);
    terminal.progress(`${topic}/${partition} needs no decision: ${finding}. To move the group, pass --from OFFSET`);
    return EXIT.failed;
  }
  const plan = planWithin(found, from);
  terminal.result(`${topic}/${partition}, group ${group}: ${toFindingText(found.finding, found.committed)}.`);
  for (const sentence of plan.description) terminal.result(sentence);
  if ((plan.skipped > 0 || isMove) && !yes) {
    const action = plan.skipped > 0 ? 'skip these records' : 'move the group';
    terminal.progress(`nothing was changed: pass --yes to ${action}`);
    return EXIT.failed;
  }
  if (isMove) return await move(offsets, options, plan, terminal);
  await offsets.decide(group, { topic, partition }, plan.decision);
  terminal.result('Decision stored. Running consumers apply the decision within seconds.');
  return EXIT.ok;
}

/** Commits an offset for the group. Kafka allows this only while the group has no members. */
async function move(offsets: GroupOffsets, { group, topic, partition }: AcceptOptions, plan: Plan, terminal: Terminal) {
  if (!(await offsets.move(group, { topic, partition }, plan.decision))) {
    terminal.progress(`nothing was changed: stop every consumer of ${group}, then run the command again`);
    return EXIT.failed;
  }
  terminal.result('Offset committed. Start the consumers to resume at this offset.');
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
