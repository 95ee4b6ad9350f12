import { Option } from '@commander-js/extra-typings';
import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type AtomicPublisher, deadLetterTopicOf, type LogReader, NOTICE_STEP } from '@playline/stream';
import { withLog } from '../await-store.ts';
import {
  type CreateCommand,
  command,
  confirm,
  EXIT,
  type ExitCode,
  endWith,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
  UsageError,
  wholeNumberFrom,
  yesOption,
} from '../command.ts';
import {
  createIsSelected,
  type DeadLetter,
  describeDeadLetter,
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
import type { WritableLogSources } from '../writable-log.ts';

export interface DeadLettersContext extends Omit<WritableLogSources, 'schemas'> {
  readonly schemaOf: SchemaSource;
  readonly stop: AbortSignal;
}

const ABOUT = `
A dead letter is a record that a consumer could not process. The topic <topic>.dead stores it unchanged until the
topic's retention time has passed. A dead letter is identified by its position: <topic>.dead/<partition>/<offset>.`;

const SHOW = '\nDead letters may contain personal data. To print only the reasons, use dead-letters list.';

const SELECT = 'pass positions, or select dead letters with --topic, --reason and --step, or pass --all';

const REPLAY = `
P${SELECT.slice(1)}.
A dead letter and its outcome are published in one transaction, so that it is replayed only once. After a failure, run
the command again.`;

const DROP = `
P${SELECT.slice(1)}.
The records remain in the dead-letter topic until retention deletes them.`;

const EFFECT = 'This marks the dead letters as dropped: their records will never be stored. This cannot be undone.';

const DEAD_LETTERS_MAX = 1e9;
/** The transactional id limits a deployment to one replay or drop at a time. */
const PUBLISHER_NAME = 'operator-dead-letters';

interface SelectOptions extends JsonOption {
  readonly topic?: string | undefined;
  readonly reason?: string | undefined;
  readonly step?: string | undefined;
}

interface SettleCommandOptions extends SelectOptions {
  readonly all?: boolean | undefined;
  readonly max: number;
  readonly note?: string | undefined;
}

interface Deps {
  readonly options: SelectOptions;
  readonly positions: readonly RecordPosition[];
  readonly context: DeadLettersContext;
  readonly log: LogReader;
  readonly terminal: Terminal;
}

const selectCommand = (name: string, description: string) =>
  jsonCommand(name, description)
    .option('--topic <topic>', 'select dead letters by original topic')
    .option('--reason <text>', 'select dead letters by the start of their reason')
    .option('--step <step>', 'select dead letters by failed step');

const settleCommand = (name: string, description: string) =>
  selectCommand(name, description)
    .argument('[positions...]', 'dead letter positions')
    .option('--all', 'select all open dead letters')
    .addOption(
      new Option('--max <number>', 'maximum number of dead letters')
        .argParser(wholeNumberFrom(1, DEAD_LETTERS_MAX))
        .default(DEAD_LETTERS_MAX, 'no limit'),
    );

export const createDeadLettersCommand =
  (context: DeadLettersContext): CreateCommand =>
  (terminal) => {
    const withDeps = async <T>(
      selected: Pick<Deps, 'options' | 'positions'>,
      run: (deps: Deps) => Promise<T>,
    ): Promise<T> => withLog(await context.openLog(), (log) => run({ ...selected, context, log, terminal }));
    return command('dead-letters', 'list, show, replay and drop dead letters')
      .addCommand(
        selectCommand('list', 'count open, replayed and dropped dead letters by topic, step and reason').action(
          (options) => withDeps({ options, positions: [] }, list),
        ),
      )
      .addCommand(
        command('show', 'print the complete contents of dead letters')
          .argument('<positions...>', 'dead letter positions')
          .addHelpText('after', SHOW)
          .action(async (texts) =>
            endWith(await withDeps({ options: {}, positions: texts.map(parsePositionArgument) }, show)),
          ),
      )
      .addCommand(
        settleCommand('replay', 'republish dead letters to their original topics')
          .option('--note <text>', 'note to store with the outcome')
          .addHelpText('after', REPLAY)
          .action(async (texts, options) => {
            const positions = positionsOf(texts, options);
            endWith(await withDeps({ options, positions }, (deps) => settle({ ...deps, options, kind: 'replayed' })));
          }),
      )
      .addCommand(
        settleCommand('drop', 'mark dead letters as dropped, so that they are never replayed')
          .requiredOption('--note <text>', 'why the dead letters are dropped; stored with the outcome')
          .addOption(yesOption())
          .addHelpText('after', DROP)
          .action(async (texts, options) => {
            const positions = positionsOf(texts, options);
            await confirm(EFFECT, options, terminal);
            endWith(await withDeps({ options, positions }, (deps) => settle({ ...deps, options, kind: 'dropped' })));
          }),
      )
      .addHelpText('after', ABOUT);
  };

function parsePositionArgument(text: string): RecordPosition {
  const position = parsePosition(text);
  if (position === null) throw new UsageError(`invalid position '${text}': expected <topic>.dead/<partition>/<offset>`);
  return position;
}

/** @throws UsageError, before stores are opened, unless exactly one selection method is used */
function positionsOf(texts: readonly string[], { topic, reason, step, all = false }: SettleCommandOptions) {
  const isFiltered = [topic, reason, step].some((each) => each !== undefined);
  if ([texts.length > 0, isFiltered, all].filter(Boolean).length !== 1) throw new UsageError(SELECT);
  return texts.map(parsePositionArgument);
}

/** The selected dead-letter topics; all of them by default. */
function topicsOf({ options: { topic }, positions, context }: Deps): string[] {
  const known = Object.values(TOPICS).map(({ name }) => deadLetterTopicOf(context.topicPrefix + name));
  const wanted = new Set(positions.map(({ topic }) => topic));
  if (topic !== undefined) wanted.add(deadLetterTopicOf(context.topicPrefix + topic));
  for (const name of wanted) if (!known.includes(name)) throw new UsageError(`'${name}' is not a dead-letter topic`);
  return wanted.size === 0 ? known : [...wanted];
}

function selectionOf({ options: { topic, reason, step }, positions, context }: Deps): Selection {
  return {
    ...(positions.length === 0 ? {} : { positions }),
    topic: topic === undefined ? undefined : context.topicPrefix + topic,
    reason,
    step,
  };
}

async function list(deps: Deps): Promise<void> {
  const { log, terminal, options } = deps;
  const groups = await groupDeadLetters(log, topicsOf(deps), createIsSelected(selectionOf(deps)));
  printResult(terminal, options, groups, groups.length === 0 ? 'no dead letters' : groups.map(toGroupLine));
}

async function show(deps: Deps): Promise<ExitCode> {
  const { log, terminal, positions, context } = deps;
  const missing = new Set(positions.map(toPositionText));
  for (const topic of topicsOf(deps)) {
    const outcomes = await readOutcomes(log, topic);
    for await (const deadLetter of readDeadLetters(log, topic)) {
      const position = toPositionText(deadLetter.position);
      if (!missing.delete(position)) continue;
      for (const line of await describeDeadLetter(deadLetter, outcomes.get(position), context)) terminal.result(line);
    }
  }
  for (const position of missing) terminal.progress(`no dead letter at ${position}`);
  return missing.size === 0 ? EXIT.ok : EXIT.failed;
}

async function settle(deps: Deps & { readonly options: SettleCommandOptions; readonly kind: Outcome['kind'] }) {
  const { kind, context, log, terminal, options, positions } = deps;
  const isReplay = kind === 'replayed';
  const topics = topicsOf(deps);
  const outcome: Outcome = { kind, atMs: Date.now(), note: options.note ?? '' };
  const isSelected = createIsSelected(selectionOf(deps));
  const publisher = await context.openPublisher(context.topicPrefix + PUBLISHER_NAME);
  try {
    const result = await settleDeadLetters({
      log,
      publisher,
      topics,
      // A notice contains no record to publish.
      isSelected: (deadLetter) => isSelected(deadLetter) && !(isReplay && deadLetter.step === NOTICE_STEP),
      outcome,
      max: options.max,
      onProgress: (count) => terminal.progress(`${count} ${kind}`),
      stop: context.stop,
    });
    const line = `${result.settled} ${kind}, ${result.before} already settled`;
    printResult(terminal, options, { fate: kind, ...result }, line);
    const isComplete = positions.length === 0 || result.settled + result.before === positions.length;
    if (!isComplete)
      terminal.progress(
        'some of the selected dead letters do not exist: retention may have deleted them' +
          (isReplay ? '. Notices (step index) can only be dropped' : ''),
      );
    return isComplete ? EXIT.ok : EXIT.failed;
  } finally {
    await publisher.close();
  }
}

interface DeadLetterGroup {
  readonly topic: string;
  readonly step: string;
  readonly reason: string;
  open: number;
  replayed: number;
  dropped: number;
  firstAtMs: number;
  lastAtMs: number;
  /** Position of the first open dead letter, to pass to `show`. */
  example: string | null;
}

/** Reasons often contain input values, so only the beginning is shown. */
const REASON_CHARACTERS_MAX = 80;
/** Limits memory: further reasons are counted in one group. */
const GROUPS_MAX = 200;
const OTHER_REASONS = '(other reasons)';

/** Counts dead letters by topic, step and reason. Groups are sorted by the number of open dead letters. */
async function groupDeadLetters(
  log: LogReader,
  topics: readonly string[],
  isSelected: (deadLetter: DeadLetter) => boolean,
): Promise<DeadLetterGroup[]> {
  const groups = new Map<string, DeadLetterGroup>();
  for (const topic of topics) {
    const outcomes = await readOutcomes(log, topic);
    for await (const deadLetter of readDeadLetters(log, topic)) {
      if (!isSelected(deadLetter)) continue;
      const group = groupOf(groups, deadLetter);
      const position = toPositionText(deadLetter.position);
      const state = outcomes.get(position)?.kind ?? 'open';
      group[state]++;
      group.firstAtMs = Math.min(group.firstAtMs, deadLetter.deadLetteredAtMs);
      group.lastAtMs = Math.max(group.lastAtMs, deadLetter.deadLetteredAtMs);
      if (state === 'open') group.example ??= position;
    }
  }
  return [...groups.values()].sort((a, b) => b.open - a.open || b.lastAtMs - a.lastAtMs);
}

function groupOf(
  groups: Map<string, DeadLetterGroup>,
  { original: { topic }, step, reason: fullReason, deadLetteredAtMs: atMs }: DeadLetter,
): DeadLetterGroup {
  const keyOf = (reason: string) => JSON.stringify([topic, step, reason]);
  let reason = fullReason.slice(0, REASON_CHARACTERS_MAX);
  if (groups.size >= GROUPS_MAX && !groups.has(keyOf(reason))) reason = OTHER_REASONS;
  const counts = { open: 0, replayed: 0, dropped: 0, firstAtMs: atMs, lastAtMs: atMs, example: null };
  const group: DeadLetterGroup = groups.get(keyOf(reason)) ?? { topic, step, reason, ...counts };
  groups.set(keyOf(reason), group);
  return group;
}

function toGroupLine(group: DeadLetterGroup): string {
  const toTime = (ms: number) => new Date(ms).toISOString();
  const counts = `${group.open} open, ${group.replayed} replayed, ${group.dropped} dropped`;
  const times = `${toTime(group.firstAtMs)} to ${toTime(group.lastAtMs)}`;
  const example = group.example === null ? '' : `  show ${group.example}`;
  return `${group.topic}  ${group.step}  ${counts}  ${times}  ${JSON.stringify(group.reason)}${example}`;
}

interface SettleOptions {
  readonly log: LogReader;
  /** Opened before the log is read, to fence earlier commands. */
  readonly publisher: AtomicPublisher;
  readonly topics: readonly string[];
  readonly isSelected: (deadLetter: DeadLetter) => boolean;
  readonly outcome: Outcome;
  readonly max: number;
  readonly onProgress: (settled: number) => void;
  /** Aborted to stop after the current batch. */
  readonly stop: AbortSignal;
}

/** Larger transactions would delay consumers without any benefit. */
const BATCH_MAX = 100;
const BATCH_BYTES_MAX = 512 * 1024;

/**
 * Replays or drops the selected open dead letters in log order, each exactly once: one transaction contains the
 * replayed record and the outcome, and the publisher fences earlier commands before the outcomes are read.
 * @throws Error when a batch could not be settled; earlier batches are settled
 */
export async function settleDeadLetters(options: SettleOptions) {
  // `before` counts dead letters that were already settled.
  const result = { settled: 0, before: 0 };
  const { log, publisher, topics, outcome, isSelected, max, stop, onProgress } = options;
  let batch: DeadLetter[] = [];
  let bytes = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    const replays = outcome.kind === 'replayed' ? batch.map(toReplayRecord) : [];
    await publisher.publish([...replays, ...batch.map((deadLetter) => toOutcomeRecord(deadLetter, outcome))]);
    result.settled += batch.length;
    onProgress(result.settled);
    [batch, bytes] = [[], 0];
  };
  for (const topic of topics) {
    const outcomes = await readOutcomes(log, topic);
    for await (const deadLetter of readDeadLetters(log, topic)) {
      if (stop.aborted || result.settled + batch.length >= max) break;
      if (!isSelected(deadLetter)) continue;
      if (outcomes.has(toPositionText(deadLetter.position))) {
        result.before++;
        continue;
      }
      batch.push(deadLetter);
      bytes += (deadLetter.record.key?.length ?? 0) + (deadLetter.record.value?.length ?? 0);
      if (batch.length >= BATCH_MAX || bytes >= BATCH_BYTES_MAX) await flush();
    }
    await flush();
  }
  return result;
}
