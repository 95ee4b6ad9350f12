import { EXIT, UsageError } from '../services/operator/src/command.ts';

/**
 * Runs a measuring command. `--help` explains it, and wrong arguments end it with 2, both before anything is started. A
 * failure ends it with 1.
 * @param run checks its arguments first
 * @throws UsageError
 */
export async function runMeasure(help: string, run: (args: readonly string[]) => Promise<void>): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes('--help')) return console.log(help);
  try {
    await run(args);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const isWording = error instanceof UsageError;
    console.error(isWording ? `${text}\n\n${help}` : text);
    process.exitCode = isWording ? EXIT.usage : EXIT.failed;
  }
}

/** Rows as a Markdown table. Columns are as wide as their widest cell, except for the last. */
export function toTable<R>(columns: Readonly<Record<string, (row: R) => string | number>>, rows: readonly R[]): string {
  const names = Object.keys(columns);
  const cells = [names, ...rows.map((row) => Object.values(columns).map((cellOf) => String(cellOf(row))))];
  const widths = names.map((_, at) => cells.reduce((most, line) => Math.max(most, line[at]!.length), 0));
  widths[widths.length - 1] = 0;
  const lines = cells.map((line) => line.map((cell, at) => cell.padEnd(widths[at]!)));
  lines.splice(1, 0, [...widths.map((width) => '-'.repeat(Math.max(width, 3)))]);
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}
