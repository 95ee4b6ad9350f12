import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { Option } from '@commander-js/extra-typings';
import { isChainName } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import { type CreateCommand, EXIT, endWith, jsonCommand, printResult, type Terminal, UsageError } from '../command.ts';
import { type Imported, type ImportSources, openImporter } from '../import/importer.ts';
import { type LineSource, openLineSource } from '../import/lines.ts';
import { ACTIVITIES, type ImportedRow, type ImportSubject, TOKENS } from '../import/subjects.ts';
import { createProgress } from '../terminal.ts';

export interface ImportContext extends ImportSources {
  readonly stdin: Readable;
  readonly folder: string;
  readonly stop: AbortSignal;
}

const HELP = `
Each line is a JSON object in the format of the chain API, with the chain name in chain and without updated_at. All
lines are validated before the first line is published. Invalid lines are reported by line number and skipped.

An import can be repeated safely. If several lines describe the same activity or token, only the last line is used.
Lines that match the stored version are not published again.

Exit codes: 0 all lines are in the log, 1 line refused or import interrupted, 2 invalid arguments, 3 store not
responding.`;

const REFUSALS_SHOWN_MAX = 1_000;

interface Deps {
  readonly context: ImportContext;
  readonly terminal: Terminal;
  readonly source: LineSource;
  readonly chain: string | null;
  readonly writerGroup: string;
}

export const createImportCommand =
  (context: ImportContext): CreateCommand =>
  (terminal) =>
    jsonCommand('import', 'import chain activities or tokens from a JSON Lines file')
      .argument('<file>', 'JSON Lines file, or - for standard input')
      .addOption(
        new Option('--topic <topic>', 'topic to publish to')
          .choices([ACTIVITIES.topic.name, TOKENS.topic.name])
          .makeOptionMandatory(),
      )
      .option('--chain <name>', 'accept only lines for this chain')
      .option('--writer-group <name>', 'consumer group of the activity writer', GROUPS.activityWriter)
      .addHelpText('after', HELP)
      .action(async (file, { topic, chain = null, writerGroup, ...output }) => {
        if (chain !== null && !isChainName(chain)) throw new UsageError('--chain: expected a chain name');
        const source = await openLineSource(file === '-' ? null : resolve(context.folder, file), context);
        try {
          const deps = { context, terminal, source, chain, writerGroup };
          const imported = await (topic === TOKENS.topic.name ? importOf(TOKENS, deps) : importOf(ACTIVITIES, deps));
          const { unchanged: standing, ...counts } = imported;
          printResult(terminal, output, { ...counts, standing }, toLine(imported));
          if (context.stop.aborted) terminal.progress('interrupted: run the command again to resume');
          endWith(imported.refused > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok);
        } finally {
          await source.close();
        }
      });

async function importOf<R, Row extends ImportedRow>(subject: ImportSubject<R, Row>, deps: Deps): Promise<Imported> {
  const { context, terminal, source, chain, writerGroup } = deps;
  const onProgress = terminal.progress;
  const importer = await openImporter(subject, { ...context, writerGroup, onProgress });
  try {
    return await importer.import({
      chain,
      lines: source.read,
      tail: await importer.readTail(),
      onRefused: createRefusalReporter(terminal),
      onProgress: createProgress(terminal),
      stop: context.stop,
    });
  } finally {
    await importer.close();
  }
}

function createRefusalReporter({ progress }: Terminal) {
  let shown = 0;
  return (number: number, faults: readonly string[]) => {
    shown++;
    if (shown <= REFUSALS_SHOWN_MAX) progress(`line ${number}: ${faults.join('; ')}`);
    if (shown === REFUSALS_SHOWN_MAX) progress('more lines were refused: only their number is reported');
  };
}

function toLine({ lines, published, unchanged, superseded, refused }: Imported): string {
  return (
    `${lines} lines: ${published} published, ${unchanged} unchanged, ` +
    `${superseded} replaced by a later line, ${refused} refused`
  );
}
