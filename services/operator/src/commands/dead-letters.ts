import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type AtomicPublisher, deadLetterTopicOf, type LogReader, NOTICE_STEP } from '@playline/stream';
import { withLog } from '../await-store.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  isMeant,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
} from '../command.ts';
import { describeLetter } from '../dead-letters/contents.ts';
import {
  createIsSelected,
  type Fate,
  type Letter,
  type Place,
  parsePlace,
  readFates,
  readLetters,
  type Selection,
  toMark,
  toPlaceText,
  toReplay,
} from '../dead-letters/letters.ts';

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

const HELP = `usage: operator dead-letters list   [--topic T] [--reason R] [--step S] [--json]
       operator dead-letters show   LETTER…
       operator dead-letters replay LETTER… | --all | [--topic T] [--reason R] [--step S]  [--max N] [--note TEXT] [--json]
       operator dead-letters drop   the same, with --note TEXT  [--yes]
                                          (npm run dead-letters -- list)

A dead letter is a record that a consumer could not process, kept as it was in <topic>.dead for as long as that topic
keeps records. LETTER is <topic>.dead/<partition>/<offset>.

list    counts by topic, step and reason: open, replayed, dropped
show    everything a letter holds. It may be personal data; list prints none but what a reason quotes
replay  publishes letters to the topic they came from. Each once, whatever happens: a letter is published and marked in
        one step, and one that is marked is left alone. Run it again after a fault
drop    marks letters that shall not be replayed; their bytes stay until the topic forgets them. It cannot be taken back,
        so it asks first

  --topic   the topic the letters came from     --reason  how the reason begins     --step  the step that could not go on
  --all     every open letter                   --max     at most so many           --note  why, kept with the mark
  --yes     drop without asking

Exit code: 0 done, 1 it failed, 2 wrong words, 3 Kafka does not answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  topic: text,
  reason: text,
  step: text,
  max: text,
  note: text,
  all: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

const DROPS = 'This marks dead letters so that they are never replayed: what they hold will not be stored.';

/** Maximum arguments: an action and the letters named with it; options can select more. */
const WORDS_MAX = 101;
/** Transactional id, so that only one command at a time settles letters in a deployment. */
const PUBLISHER_NAME = 'operator-dead-letters';

export function createDeadLettersCommand(context: DeadLettersContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, WORDS_MAX);
    const [action, ...letters] = words;
    const ask = { values, places: letters.map(toPlace) };
    const act = { list, show, replay: settle, drop: settle }[action ?? ''];
    if (act === undefined) throw new UsageError('expected list, show, replay or drop');
    const checked = check(action ?? '', ask);
    if (action === 'drop' && !(await isMeant(DROPS, values, terminal))) {
      terminal.progress('nothing was dropped');
      return EXIT.failed;
    }
    return withLog(await context.openLog(), (log) => act({ ...checked, context, log, terminal }));
  };
  return { name: 'dead-letters', summary: 'list, show, replay and drop dead letters', help: HELP, run };
}

interface Ask {
  readonly action: string;
  readonly values: Values;
  readonly places: readonly Place[];
}

interface Work extends Ask {
  readonly context: DeadLettersContext;
  readonly log: LogReader;
  readonly terminal: Terminal;
}

function toPlace(word: string): Place {
  const place = parsePlace(word);
  if (place === null) throw new UsageError(`expected <topic>.dead/<partition>/<offset>, not '${word}'`);
  return place;
}

/** @throws UsageError for arguments that contradict each other, before anything is opened */
function check(action: string, { values, places }: Omit<Ask, 'action'>): Ask {
  const isNarrowed = ['topic', 'reason', 'step'].some((name) => textOf(values, name) !== undefined);
  if (action === 'list' && places.length > 0) throw new UsageError('list takes options, not letters');
  if (action === 'show' && places.length === 0) throw new UsageError('show what? name a letter');
  if (action === 'replay' || action === 'drop') {
    const ways = [places.length > 0, isNarrowed, values.all === true].filter(Boolean).length;
    if (ways !== 1) throw new UsageError('name letters, or select by --topic, --reason and --step, or say --all');
    if (action === 'drop' && textOf(values, 'note') === undefined)
      throw new UsageError('--note: say why the letters are dropped');
  }
  return { action, values, places };
}

/** Every dead-letter topic, or the requested one. */
function topicsOf({ values, places, context }: Work): string[] {
  const known = Object.values(TOPICS).map(({ name }) => deadLetterTopicOf(context.topicPrefix + name));
  const wanted = new Set(places.map(({ topic }) => topic));
  const topic = textOf(values, 'topic');
  if (topic !== undefined) wanted.add(deadLetterTopicOf(context.topicPrefix + topic));
  for (const name of wanted)
    if (!known.includes(name)) throw new UsageError(`no dead letters are kept under '${name}'`);
  return wanted.size === 0 ? known : [...wanted];
}

function selectionOf({ values, places, context }: Work): Selection {
  const topic = textOf(values, 'topic');
  return {
    ...(places.length === 0 ? {} : { places }),
    topic: topic === undefined ? undefined : context.topicPrefix + topic,
    reason: textOf(values, 'reason'),
    step: textOf(values, 'step'),
  };
}

async function list(work: Work): Promise<ExitCode> {
  const { log, terminal, values } = work;
  const groups = await groupLetters(log, topicsOf(work), createIsSelected(selectionOf(work)));
  if (values.json === true) terminal.result(JSON.stringify(groups));
  else for (const group of groups) terminal.result(toGroupLine(group));
  if (groups.length === 0 && values.json !== true) terminal.result('no dead letters');
  return EXIT.ok;
}

async function show(work: Work): Promise<ExitCode> {
  const { log, terminal, places, context } = work;
  const open = new Set(places.map(toPlaceText));
  for (const topic of topicsOf(work)) {
    const fates = await readFates(log, topic);
    for await (const letter of readLetters(log, topic)) {
      const place = toPlaceText(letter.place);
      if (!open.delete(place)) continue;
      for (const line of await describeLetter(letter, fates.get(place), context)) terminal.result(line);
    }
  }
  for (const place of open) terminal.progress(`no letter at ${place}`);
  return open.size === 0 ? EXIT.ok : EXIT.failed;
}

/** Replays or drops the selected letters. */
async function settle(work: Work): Promise<ExitCode> {
  const { action, context, log, terminal, values, places } = work;
  const isReplay = action === 'replay';
  const topics = topicsOf(work);
  const lettersMax = numberOf(values, 'max', { min: 1, max: 1e9, fallback: 1e9 });
  const fate: Fate = {
    kind: isReplay ? 'replayed' : 'dropped',
    atMs: Date.now(),
    note: textOf(values, 'note') ?? '',
  };
  const isSelected = createIsSelected(selectionOf(work));
  const publisher = await context.openPublisher(context.topicPrefix + PUBLISHER_NAME);
  try {
    const result = await settleLetters({
      log,
      publisher,
      topics,
      // A notice has no record that could be published.
      isSelected: (letter) => isSelected(letter) && !(isReplay && letter.step === NOTICE_STEP),
      fate,
      lettersMax,
      onProgress: (count) => terminal.progress(`${count} ${fate.kind}`),
      stop: context.stop,
    });
    const line = `${result.settled} ${fate.kind}, ${result.before} had been settled before`;
    terminal.result(values.json === true ? JSON.stringify({ fate: fate.kind, ...result }) : line);
    const isComplete = places.length === 0 || result.settled + result.before === places.length;
    if (!isComplete)
      terminal.progress(
        isReplay
          ? 'not every named letter was replayed: retention may have deleted it, and notices (step index) are only dropped'
          : 'not every named letter exists: retention may have deleted it',
      );
    return isComplete ? EXIT.ok : EXIT.failed;
  } finally {
    await publisher.close();
  }
}

/** Letters of one topic, step and reason. */
interface LetterGroup {
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
async function groupLetters(
  log: LogReader,
  topics: readonly string[],
  isSelected: (letter: Letter) => boolean,
): Promise<LetterGroup[]> {
  const groups = new Map<string, LetterGroup>();
  for (const topic of topics) {
    const fates = await readFates(log, topic);
    for await (const letter of readLetters(log, topic)) {
      if (!isSelected(letter)) continue;
      const group = groupOf(groups, letter);
      const place = toPlaceText(letter.place);
      const fate = fates.get(place)?.kind ?? 'open';
      group[fate]++;
      group.firstAtMs = Math.min(group.firstAtMs, letter.deadAtMs);
      group.lastAtMs = Math.max(group.lastAtMs, letter.deadAtMs);
      if (fate === 'open') group.example ??= place;
    }
  }
  return [...groups.values()].sort((a, b) => b.open - a.open || b.lastAtMs - a.lastAtMs);
}

function groupOf(groups: Map<string, LetterGroup>, { original, step, reason, deadAtMs }: Letter): LetterGroup {
  const make = (shown: string) => {
    const key = JSON.stringify([original.topic, step, shown]);
    const known = groups.get(key);
    if (known !== undefined) return known;
    if (groups.size >= GROUPS_MAX && shown !== OTHER_REASONS) return null;
    const counts = { open: 0, replayed: 0, dropped: 0, firstAtMs: deadAtMs, lastAtMs: deadAtMs, example: null };
    const group: LetterGroup = { topic: original.topic, step, reason: shown, ...counts };
    groups.set(key, group);
    return group;
  };
  return make(reason.slice(0, REASON_CHARACTERS_MAX)) ?? make(OTHER_REASONS)!;
}

const toTime = (ms: number) => new Date(ms).toISOString();

/** One line per group. */
function toGroupLine(group: LetterGroup): string {
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
  readonly isSelected: (letter: Letter) => boolean;
  readonly fate: Fate;
  /** Maximum number of letters to settle. */
  readonly lettersMax: number;
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
export async function settleLetters(options: SettleOptions): Promise<Settled> {
  const result: Settled = { settled: 0, before: 0 };
  for (const topic of options.topics) await settleTopic(topic, result, options);
  return result;
}

async function settleTopic(topic: string, result: Settled, options: SettleOptions): Promise<void> {
  const { log, isSelected, lettersMax, stop } = options;
  const fates = await readFates(log, topic);
  let batch: Letter[] = [];
  let bytes = 0;
  const flush = async () => {
    await publish(batch, options);
    result.settled += batch.length;
    if (batch.length > 0) options.onProgress(result.settled);
    [batch, bytes] = [[], 0];
  };
  for await (const letter of readLetters(log, topic)) {
    if (stop.aborted || result.settled + batch.length >= lettersMax) break;
    if (!isSelected(letter)) continue;
    if (fates.has(toPlaceText(letter.place))) {
      result.before++;
      continue;
    }
    batch.push(letter);
    bytes += (letter.record.key?.length ?? 0) + (letter.record.value?.length ?? 0);
    if (batch.length >= BATCH_LETTERS_MAX || bytes >= BATCH_BYTES_MAX) await flush();
  }
  await flush();
}

async function publish(letters: readonly Letter[], { publisher, fate }: SettleOptions): Promise<void> {
  if (letters.length === 0) return;
  const replays = fate.kind === 'replayed' ? letters.map(toReplay) : [];
  await publisher.publish([...replays, ...letters.map((letter) => toMark(letter, fate))]);
}
