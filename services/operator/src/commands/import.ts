import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { isChainName } from '@playline/contracts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
} from '../command.ts';
import type { Imported } from '../import/import-lines.ts';
import { type ImportSources, openImportWay } from '../import/import-way.ts';
import { type LineSource, openLineSource } from '../import/lines.ts';
import { ACTIVITIES, type ImportedRow, type ImportSubject, TOKENS } from '../import/subjects.ts';
import { createProgress } from '../progress.ts';

export interface ImportContext extends ImportSources {
  readonly stdin: Readable;
  /** Base of relative paths. */
  readonly folder: string;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator import --topic chain.activities.v1|chain.tokens.v1 FILE|- [options]
                                          (npm run import -- --topic … FILE)

Publishes activities or tokens of chains from lines of JSON, each as the chain interface shows it, but that chain is the
name of the chain and updated_at is absent. - reads standard input.

Each line is looked at before the first is published; a line that is wrong is told with its number and all that is wrong
with it, and the others go on. It can be repeated, also after it was killed: of several lines about one activity or token
the last one counts, and it is published unless what stands says the same.

  --topic                  where the lines go
  --chain NAME             a line about another chain is wrong
  --writer-group NAME      consumer group of the activity writer (activity-writer)
  --json                   the result as one JSON line

Exit code: 0 all lines stand in the log, 1 a line was refused, or it ended early; 2 wrong words, 3 a store does not
answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  topic: text,
  chain: text,
  'writer-group': text,
  json: { type: 'boolean', default: false },
} as const;
/** Maximum number of refused lines shown for one import; more would hide the first ones. */
const REFUSALS_SHOWN_MAX = 1_000;

interface Work {
  readonly context: ImportContext;
  readonly terminal: Terminal;
  readonly source: LineSource;
  readonly chain: string | null;
  readonly writerGroup: string;
}

/** `import`: writes activities and tokens to the log. */
export function createImportCommand(context: ImportContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const choices = [ACTIVITIES.topic.name, TOKENS.topic.name];
    const topic = choiceOf(values, 'topic', { choices });
    const chain = textOf(values, 'chain') ?? null;
    if (chain !== null && !isChainName(chain)) throw new UsageError('--chain: expected the name of a chain');
    const [word] = words;
    if (word === undefined) throw new UsageError('import what? name a file, or - for standard input');
    const path = word === '-' ? null : resolve(context.folder, word);
    const source = await openLineSource(path, context);
    try {
      const writerGroup = textOf(values, 'writer-group') ?? 'activity-writer';
      const work = { context, terminal, source, chain, writerGroup };
      const imported = await (topic === TOKENS.topic.name ? importOf(TOKENS, work) : importOf(ACTIVITIES, work));
      terminal.result(values.json === true ? JSON.stringify(imported) : toLine(imported));
      if (context.stop.aborted) terminal.progress('ended early: run it again to go on');
      return imported.refused > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok;
    } finally {
      await source.close();
    }
  };
  return { name: 'import', summary: 'publish activities and tokens of chains from a file', help: HELP, run };
}

async function importOf<R, Row extends ImportedRow>(subject: ImportSubject<R, Row>, work: Work): Promise<Imported> {
  const { context, terminal, source, chain, writerGroup } = work;
  const onProgress = terminal.progress;
  const way = await openImportWay(subject, { ...context, writerGroup, onProgress });
  try {
    return await way.import({
      chain,
      lines: source.read,
      tail: await way.readTail(),
      onRefused: createTellRefused(terminal),
      onProgress: createProgress(terminal),
      stop: context.stop,
    });
  } finally {
    await way.close();
  }
}

function createTellRefused({ progress }: Terminal) {
  let shown = 0;
  return (number: number, faults: readonly string[]) => {
    shown++;
    if (shown <= REFUSALS_SHOWN_MAX) progress(`line ${number}: ${faults.join('; ')}`);
    if (shown === REFUSALS_SHOWN_MAX) progress('lines that are refused from here on are counted, and not told');
  };
}

function toLine({ lines, published, standing, superseded, refused }: Imported): string {
  return (
    `${lines} lines: ${published} published, ${standing} say what stands already, ` +
    `${superseded} followed by a later line about the same, ${refused} refused`
  );
}
