import { auditGroupOf, GROUPS, parkedGroupOf } from '@playline/runtime';
import { type GroupOffsets, type GroupPartition, isAnswer, toFindingText } from '@playline/stream';
import { awaitStore, withOpened } from '../await-store.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
} from '../command.ts';
import { type From, needsDecision, type Plan, planDecision } from '../offsets/plan.ts';
import { toTable } from '../table.ts';

export interface OffsetsContext {
  readonly openOffsets: () => Promise<GroupOffsets>;
}

/** Every consumer group of a deployment. */
export const OFFSET_GROUPS: readonly string[] = [
  ...[GROUPS.writer, auditGroupOf(GROUPS.writer), GROUPS.linker, parkedGroupOf(GROUPS.linker)],
  ...[GROUPS.activityWriter, GROUPS.minter, GROUPS.eraser],
];

const HELP = `usage: operator offsets list   [--group G,H,…] [--json]
       operator offsets accept --group G --topic T --partition P [--from earliest-unread|end|OFFSET] [--yes]
                                          (npm run offsets -- list)

A consumer does not read a partition whose log is not the one that it has read: the log lost its end (a lone broker that
lost power, an election of a replica that was behind), or was exchanged, or retention took what a consumer of link facts
had not read. Nor does it read on behind an offset that another tool has committed, which may pass records over. That
partition stands until somebody decides; all others go on.

list    what each group has committed, beside where its logs begin and end, and what stands in the way; of the groups
        ${OFFSET_GROUPS.join(', ')}, unless --group names others
accept  decides that reading goes on with the log as it is. Says what will be read again and what passed over before it
        does anything. The consumers follow within seconds, without a restart; stopped ones when they start

  --from earliest-unread   (default) the first record that nobody has read, as the epochs of the log's leaders tell it;
                           the log's first record where they do not
  --from end               only what comes from now on
  --from OFFSET            there. Where nothing stands in the way as well: to read again what a table lacks, or to pass
                           over. The group's consumers must be stopped for that, and are started afterwards
  --yes                    needed when records would be passed over that nobody has read, and where nothing stands in
                           the way

For the group of the identity linker see its README first: a replaced link topic also needs another LINK_TOPIC_GENERATION.

Exit code: 0 done or nothing in the way, 1 something stands in the way, was refused, or a group that you named has
committed nothing, 2 wrong words, 3 Kafka does not answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  group: text,
  topic: text,
  partition: text,
  from: text,
  yes: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

const awaitOffsets = (offsets: GroupOffsets) =>
  awaitStore('Kafka', async () => (await offsets.list('operator')).length === 0);

export function createOffsetsCommand({ openOffsets }: OffsetsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const action = words[0];
    if (action !== 'list' && action !== 'accept') throw new UsageError('expected list or accept');
    const asked = action === 'accept' ? parseAsked(values) : null;
    return withOpened(await openOffsets(), awaitOffsets, (offsets) =>
      asked === null ? list(offsets, values, terminal) : accept(offsets, asked, terminal),
    );
  };
  return { name: 'offsets', summary: 'what groups have committed, and where to go on', help: HELP, run };
}

interface Asked {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly from: From;
  readonly isSure: boolean;
}

/** @throws UsageError */
function parseAsked(values: Values): Asked {
  const [group, topic] = [textOf(values, 'group'), textOf(values, 'topic')];
  if (group === undefined || topic === undefined) throw new UsageError('accept needs --group and --topic');
  const partition = parseWhole(textOf(values, 'partition'), '--partition');
  const from = textOf(values, 'from') ?? 'earliest-unread';
  const isWord = from === 'earliest-unread' || from === 'end';
  return { group, topic, partition, from: isWord ? from : parseWhole(from, '--from'), isSure: values.yes === true };
}

function parseWhole(given: string | undefined, name: string): number {
  if (given === undefined || !/^\d{1,15}$/.test(given)) throw new UsageError(`${name}: expected a whole number`);
  return Number(given);
}

/** Why a partition needs a decision; null when it does not. */
function obstacleOf(at: GroupPartition): string | null {
  if (!needsDecision(at)) return null;
  const isDecided = at.decision !== null && isAnswer(at.decision, at);
  const words = toFindingText(at.finding, at.committed);
  return isDecided ? `${words}; decided: its consumer goes on at ${at.decision!.from}` : words;
}

async function list(offsets: GroupOffsets, values: Values, terminal: Terminal): Promise<ExitCode> {
  const groups = textOf(values, 'group')?.split(',') ?? OFFSET_GROUPS;
  const found: (GroupPartition & { group: string; obstacle: string | null })[] = [];
  for (const group of groups)
    for (const each of await offsets.list(group)) found.push({ group, ...each, obstacle: obstacleOf(each) });
  // A mistyped name must not look like a group without problems, but the groups of a new deployment may have no commits
  // yet.
  const absent = groups.filter((name) => !found.some(({ group }) => group === name));
  for (const name of absent) terminal.progress(`group ${name} has committed nothing`);
  if (values.json === true) terminal.result(JSON.stringify({ partitions: found }));
  else for (const line of toLines(found)) terminal.result(line);
  const isNamed = textOf(values, 'group') !== undefined;
  const isFree = !(isNamed && absent.length > 0) && found.every(({ obstacle }) => obstacle === null);
  return isFree ? EXIT.ok : EXIT.failed;
}

function toLines(found: readonly (GroupPartition & { group: string; obstacle: string | null })[]): string[] {
  const head = ['group', 'topic', 'part', 'committed', 'log start', 'log end', 'what stands in the way'];
  const rows = found.map(({ group, topic, partition, committed, start, end, obstacle }) =>
    [group, topic, partition, committed, start, end, obstacle ?? '-'].map(String),
  );
  return toTable(head, rows);
}

async function accept(offsets: GroupOffsets, asked: Asked, terminal: Terminal): Promise<ExitCode> {
  const { group, topic, partition, from, isSure } = asked;
  const found = (await offsets.list(group)).find((each) => each.topic === topic && each.partition === partition);
  if (found === undefined) throw new UsageError(`group ${group} has committed nothing of ${topic}/${partition}`);
  const isMove = !needsDecision(found);
  if (isMove && typeof from !== 'number') {
    const words = toFindingText(found.finding, found.committed);
    terminal.progress(
      `${topic}/${partition}: nothing to decide, ${words}; --from OFFSET reads from there all the same`,
    );
    return EXIT.failed;
  }
  const plan = planWithin(found, from);
  terminal.result(`${topic}/${partition} of ${group}: ${toFindingText(found.finding, found.committed)}.`);
  for (const sentence of plan.says) terminal.result(sentence);
  if ((plan.passesOver > 0 || isMove) && !isSure) {
    const what = plan.passesOver > 0 ? 'records shall be passed over' : 'reading shall go on there';
    terminal.progress(`nothing was done: say --yes if ${what}`);
    return EXIT.failed;
  }
  if (isMove) return await move(offsets, { asked, plan }, terminal);
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
  { asked: { group, topic, partition }, plan }: { asked: Asked; plan: Plan },
  terminal: Terminal,
): Promise<ExitCode> {
  if (!(await offsets.move(group, { topic, partition }, plan.decision))) {
    terminal.progress(`nothing was done: stop every consumer of the group ${group} first, and start them afterwards`);
    return EXIT.failed;
  }
  terminal.result('Committed. The consumers go on there when they are started.');
  return EXIT.ok;
}

/** @throws UsageError for an offset that the log does not have */
function planWithin(found: GroupPartition, from: From) {
  try {
    return planDecision(found, from, Date.now());
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}
