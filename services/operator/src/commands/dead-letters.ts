import { Option } from '@commander-js/extra-typings';
import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type AtomicPublisher, deadLetterTopicOf, type LogReader, NOTICE_STEP } from '@playline/stream';
import { withLog } from '../await-store.ts';
import {
  type CreateCommand,
  command,
  EXIT,
  type ExitCode,
  endWith,
  isConfirmed,
  type Terminal,
  UsageError,
  wholeNumberFrom,
} from '../command.ts';
import { describeDeadLetter } from '../dead-letters/contents.ts';
import {
  createIsSelected,
  type DeadLetter,
  type Outcome,
  parsePosition,
  type RecordPosition,
  readDeadLetters,
  readOutcomes,
  type Selection,
  toOutcomeRecord,
  toPositionText,
  toReplayRecord,
} from '../dead-letters/dead-letters.ts';

export interface DeadLettersContext {
  readonly openLog: () => Promise<LogReader>;
  /** Opening a transactional id fences its earlier publisher. */
  readonly openPublisher: (name: string) => Promise<AtomicPublisher>;
  /** Returns the text of a schema. @throws UnknownSchemaFault */
  readonly schemaOf: SchemaSource;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

const ABOUT = `
A dead letter is a record that a consumer could not process. It is kept unchanged in <topic>.dead as long as that topic
keeps records. Dead letters are named by their position: <topic>.dead/<partition>/<offset>.`;

const SHOW = '\nA dead letter may contain personal data. list prints none, except what a reason quotes.';

const REPLAY = `
Name dead letters, or select them by --topic, --reason and --step, or with --all. Each is published and marked in one
transaction, so it is replayed only once. Run the command again after a failure.`;

const DROP = `
Name dead letters, or select them by --topic, --reason and --step, or with --all. Their bytes stay until retention deletes
them.`;

const EFFECT =
  'The dead letters are marked and never replayed: their records will not be stored. This cannot be undone.';

const DEAD_LETTERS_MAX = 1e9;
/** Transactional id, so that only one command at a time settles letters in a deployment. */
const PUBLISHER_NAME = 'operator-dead-letters';

interface SelectOptions {
  readonly topic?: string | undefined;
  readonly reason?: string | undefined;
  readonly step?: string | undefined;
  readonly json?: boolean | undefined;
}

interface SettleCommandOptions extends SelectOptions {
  readonly all?: boolean | undefined;
  readonly max: number;
  readonly note?: string | undefined;
}

interface Work {
  readonly options: SelectOptions;
  readonly positions: readonly RecordPosition[];
  readonly context: DeadLettersContext;
  readonly log: LogReader;
  readonly terminal: Terminal;
}

/** A command with the options that select dead letters. */
const selecting = (name: string, description: string) =>
  command(name, description)
    .option('--topic <topic>', 'topic that the dead letters came from')
    .option('--reason <text>', 'start of the reason')
    .option('--step <step>', 'step that failed')
    .option('--json', 'print the result as one JSON line');

/** A command with the options that select dead letters to be settled. */
const settling = (name: string, description: string) =>
  selecting(name, description)
    .argument('[letters...]', 'positions of dead letters')
    .option('--all', 'all open dead letters')
    .addOption(
      new Option('--max <number>', 'maximum number of dead letters')
        .argParser(wholeNumberFrom(1, DEAD_LETTERS_MAX))
        .default(DEAD_LETTERS_MAX, 'no limit'),
    );

export const createDeadLettersCommand =
  (context: DeadLettersContext): CreateCommand =>
  (terminal) => {
    const withWork = async <T>(
      { options, positions: places }: Pick<Work, 'options' | 'positions'>,
      act: (work: Work) => Promise<T>,
    ): Promise<T> =>
      withLog(await context.openLog(), (log) => act({ options, positions: places, context, log, terminal }));
    return command('dead-letters', 'list, show, replay and drop dead letters')
      .addCommand(
        selecting('list', 'count dead letters by topic, step and reason: open, replayed, dropped').action((options) =>
          withWork({ options, positions: [] }, list),
        ),
      )
      .addCommand(
        command('show', 'print all contents of dead letters')
          .argument('<letters...>', 'positions of dead letters')
          .addHelpText('after', SHOW)
          .action(async (letters) =>
            endWith(await withWork({ options: {}, positions: letters.map(parsePositionArgument) }, show)),
          ),
      )
      .addCommand(
        settling('replay', 'publish dead letters to the topic they came from')
          .option('--note <text>', 'a note that is kept with the mark')
          .addHelpText('after', REPLAY)
          .action(async (letters, options) => {
            const places = positionsOf(letters, options);
            endWith(
              await withWork({ options, positions: places }, (work) => settle({ ...work, options, kind: 'replayed' })),
            );
          }),
      )
      .addCommand(
        settling('drop', 'mark dead letters that must not be replayed')
          .requiredOption('--note <text>', 'why they are dropped; it is kept with the mark')
          .option('--yes', 'without confirmation')
          .addHelpText('after', DROP)
          .action(async (letters, options) => {
            const places = positionsOf(letters, options);
            if (await isConfirmed(EFFECT, options, terminal))
              return endWith(
                await withWork({ options, positions: places }, (work) => settle({ ...work, options, kind: 'dropped' })),
              );
            terminal.progress('nothing was dropped');
            endWith(EXIT.failed);
          }),
      )
      .addHelpText('after', ABOUT);
  };

function parsePositionArgument(letter: string): RecordPosition {
  const place = parsePosition(letter);
  if (place === null) throw new UsageError(`expected <topic>.dead/<partition>/<offset>, not '${letter}'`);
  return place;
}

/** The named dead letters. @throws UsageError unless they are selected in exactly one way, before anything is opened */
function positionsOf(
  letters: readonly string[],
  { topic, reason, step, all = false }: SettleCommandOptions,
): RecordPosition[] {
  const isNarrowed = [topic, reason, step].some((each) => each !== undefined);
  if ([letters.length > 0, isNarrowed, all].filter(Boolean).length !== 1)
    throw new UsageError('name dead letters, or select them by --topic, --reason and --step, or with --all');
  return letters.map(parsePositionArgument);
}

/** Every dead-letter topic, or the requested one. */
function topicsOf({ options: { topic }, positions: places, context }: Work): string[] {
  const known = Object.values(TOPICS).map(({ name }) => deadLetterTopicOf(context.topicPrefix + name));
  const wanted = new Set(places.map(({ topic }) => topic));
  if (topic !== undefined) wanted.add(deadLetterTopicOf(context.topicPrefix + topic));
  for (const name of wanted)
    if (!known.includes(name)) throw new UsageError(`no dead letters are kept under '${name}'`);
  return wanted.size === 0 ? known : [...wanted];
}

function selectionOf({ options: { topic, reason, step }, positions: places, context }: Work): Selection {
  return {
    ...(places.length === 0 ? {} : { positions: places }),
    topic: topic === undefined ? undefined : context.topicPrefix + topic,
    reason,
    step,
  };
}

async function list(work: Work): Promise<void> {
  const { log, terminal, options } = work;
  const groups = await groupDeadLetters(log, topicsOf(work), createIsSelected(selectionOf(work)));
  if (options.json === true) terminal.result(JSON.stringify(groups));
  else for (const group of groups) terminal.result(toGroupLine(group));
  if (groups.length === 0 && options.json !== true) terminal.result('no dead letters');
}

async function show(work: Work): Promise<ExitCode> {
  const { log, terminal, positions: places, context } = work;
  const open = new Set(places.map(toPositionText));
  for (const topic of topicsOf(work)) {
    const fates = await readOutcomes(log, topic);
    for await (const letter of readDeadLetters(log, topic)) {
      const place = toPositionText(letter.position);
      if (!open.delete(place)) continue;
      for (const line of await describeDeadLetter(letter, fates.get(place), context)) terminal.result(line);
    }
  }
  for (const place of open) terminal.progress(`no dead letter at ${place}`);
  return open.size === 0 ? EXIT.ok : EXIT.failed;
}

/** Replays or drops the selected letters. */
async function settle(
  work: Work & { readonly options: SettleCommandOptions; readonly kind: Outcome['kind'] },
): Promise<ExitCode> {
  const { kind, context, log, terminal, options, positions: places } = work;
  const isReplay = kind === 'replayed';
  const topics = topicsOf(work);
  const fate: Outcome = { kind, atMs: Date.now(), note: options.note ?? '' };
  const isSelected = createIsSelected(selectionOf(work));
  const publisher = await context.openPublisher(context.topicPrefix + PUBLISHER_NAME);
  try {
    const result = await settleDeadLetters({
      log,
      publisher,
      topics,
      // A notice has no record that could be published.
      isSelected: (letter) => isSelected(letter) && !(isReplay && letter.step === NOTICE_STEP),
      outcome: fate,
      max: options.max,
      onProgress: (count) => terminal.progress(`${count} ${fate.kind}`),
      stop: context.stop,
    });
    const line = `${result.settled} ${fate.kind}, ${result.before} had been settled before`;
    terminal.result(options.json === true ? JSON.stringify({ fate: fate.kind, ...result }) : line);
    const isComplete = places.length === 0 || result.settled + result.before === places.length;
    if (!isComplete)
      terminal.progress(
        isReplay
          ? 'not every named dead letter was replayed: retention may have deleted it, and notices (step index) can only be dropped'
          : 'not every named dead letter exists: retention may have deleted it',
      );
    return isComplete ? EXIT.ok : EXIT.failed;
  } finally {
    await publisher.close();
  }
}

/** Letters of one topic, step and reason. */
interface DeadLetterGroup {
  readonly topic: string;
  readonly step: string;
  readonly reason: string;
  open: number;
  replayed: number;
  dropped: number;
  firstAtMs: number;
  lastAtMs: number;
  /** The first open letter, for `show`; null when none is open. */
  example: string | null;
}

/** Reasons often contain the input; a group shows only the beginning. */
const REASON_CHARACTERS_MAX = 80;
/** Further reasons are counted together: a list of thousands is useless and would not fit into memory. */
const GROUPS_MAX = 200;
const OTHER_REASONS = '(other reasons)';

/** Counts the letters of dead-letter topics by topic, step and reason; groups with most open ones come first. */
async function groupDeadLetters(
  log: LogReader,
  topics: readonly string[],
  isSelected: (letter: DeadLetter) => boolean,
): Promise<DeadLetterGroup[]> {
  const groups = new Map<string, DeadLetterGroup>();
  for (const topic of topics) {
    const fates = await readOutcomes(log, topic);
    for await (const letter of readDeadLetters(log, topic)) {
      if (!isSelected(letter)) continue;
      const group = groupOf(groups, letter);
      const place = toPositionText(letter.position);
      const fate = fates.get(place)?.kind ?? 'open';
      group[fate]++;
      group.firstAtMs = Math.min(group.firstAtMs, letter.deadAtMs);
      group.lastAtMs = Math.max(group.lastAtMs, letter.deadAtMs);
      if (fate === 'open') group.example ??= place;
    }
  }
  return [...groups.values()].sort((a, b) => b.open - a.open || b.lastAtMs - a.lastAtMs);
}

function groupOf(
  groups: Map<string, DeadLetterGroup>,
  { original, step, reason, deadAtMs }: DeadLetter,
): DeadLetterGroup {
  const make = (shown: string) => {
    const key = JSON.stringify([original.topic, step, shown]);
    const known = groups.get(key);
    if (known !== undefined) return known;
    if (groups.size >= GROUPS_MAX && shown !== OTHER_REASONS) return null;
    const counts = { open: 0, replayed: 0, dropped: 0, firstAtMs: deadAtMs, lastAtMs: deadAtMs, example: null };
    const group: DeadLetterGroup = { topic: original.topic, step, reason: shown, ...counts };
    groups.set(key, group);
    return group;
  };
  return make(reason.slice(0, REASON_CHARACTERS_MAX)) ?? make(OTHER_REASONS)!;
}

const toTime = (ms: number) => new Date(ms).toISOString();

/** One line per group. */
function toGroupLine(group: DeadLetterGroup): string {
  const counts = `${group.open} open, ${group.replayed} replayed, ${group.dropped} dropped`;
  const times = `${toTime(group.firstAtMs)} to ${toTime(group.lastAtMs)}`;
  const example = group.example === null ? '' : `  show ${group.example}`;
  return `${group.topic}  ${group.step}  ${counts}  ${times}  ${JSON.stringify(group.reason)}${example}`;
}

interface SettleOptions {
  readonly log: LogReader;
  /** Opened before anything is read: from then on no other command can settle a letter. */
  readonly publisher: AtomicPublisher;
  /** Dead-letter topics. */
  readonly topics: readonly string[];
  readonly isSelected: (letter: DeadLetter) => boolean;
  readonly outcome: Outcome;
  /** Maximum number of letters to settle. */
  readonly max: number;
  readonly onProgress: (settled: number) => void;
  /** Aborted to stop after the current batch. */
  readonly stop: AbortSignal;
}

/** What was done with the selected letters. */
interface Settled {
  settled: number;
  /** Letters that were settled before, and are not changed. */
  before: number;
}

/** One transaction takes one round trip; larger ones only delay consumers. */
const BATCH_LETTERS_MAX = 100;
const BATCH_BYTES_MAX = 512 * 1024;

/**
 * Settles the selected open letters in the order of the log. A dropped letter gets a mark; a replayed letter gets a
 * mark and goes to its topic in one transaction, so a letter is replayed if and only if it is marked.
 *
 * Exactly once: opening the publisher before reading the marks fences any earlier command, whose open transaction is
 * then committed or aborted, and cannot arrive later.
 * @throws Error when letters could not be settled; earlier ones are
 */
export async function settleDeadLetters(options: SettleOptions): Promise<Settled> {
  const result: Settled = { settled: 0, before: 0 };
  for (const topic of options.topics) await settleTopic(topic, result, options);
  return result;
}

async function settleTopic(topic: string, result: Settled, options: SettleOptions): Promise<void> {
  const { log, isSelected, max: lettersMax, stop } = options;
  const fates = await readOutcomes(log, topic);
  let batch: DeadLetter[] = [];
  let bytes = 0;
  const flush = async () => {
    await publish(batch, options);
    result.settled += batch.length;
    if (batch.length > 0) options.onProgress(result.settled);
    [batch, bytes] = [[], 0];
  };
  for await (const letter of readDeadLetters(log, topic)) {
    if (stop.aborted || result.settled + batch.length >= lettersMax) break;
    if (!isSelected(letter)) continue;
    if (fates.has(toPositionText(letter.position))) {
      result.before++;
      continue;
    }
    batch.push(letter);
    bytes += (letter.record.key?.length ?? 0) + (letter.record.value?.length ?? 0);
    if (batch.length >= BATCH_LETTERS_MAX || bytes >= BATCH_BYTES_MAX) await flush();
  }
  await flush();
}

async function publish(letters: readonly DeadLetter[], { publisher, outcome: fate }: SettleOptions): Promise<void> {
  if (letters.length === 0) return;
  const replays = fate.kind === 'replayed' ? letters.map(toReplayRecord) : [];
  await publisher.publish([...replays, ...letters.map((letter) => toOutcomeRecord(letter, fate))]);
}
