import { mkdirSync, writeFileSync } from 'node:fs';
import { runCommand } from '../services/operator/src/app.ts';
import { type CreateCommand, EXIT } from '../services/operator/src/command.ts';
import { createTerminal } from '../services/operator/src/terminal.ts';

/** Runs a measurement command (`npm run <name> -- …`). Invalid arguments end the process before anything starts. */
export async function runMeasure(measure: ReturnType<CreateCommand>): Promise<void> {
  const args = [measure.name(), ...process.argv.slice(2)];
  const code = await runCommand([() => measure], args, createTerminal(process));
  if (code !== EXIT.ok) process.exitCode = code;
}

/** Writes `results/latest.json` next to a command's main file. @param main the command's `import.meta.url` */
export function writeResults(main: string, result: object): void {
  const text = JSON.stringify({ takenAt: new Date().toISOString(), ...result }, null, 2);
  mkdirSync(new URL('./results/', main), { recursive: true });
  writeFileSync(new URL('./results/latest.json', main), `${text}\n`);
}

/** Formats rows as a Markdown table. All columns except the last are padded. */
export function toTable<R>(columns: Readonly<Record<string, (row: R) => string | number>>, rows: readonly R[]): string {
  const names = Object.keys(columns);
  const cells = [names, ...rows.map((row) => Object.values(columns).map((cellOf) => String(cellOf(row))))];
  const widths = names.map((_, column) => cells.reduce((max, line) => Math.max(max, line[column]!.length), 0));
  widths[widths.length - 1] = 0;
  const lines = cells.map((line) => line.map((cell, column) => cell.padEnd(widths[column]!)));
  lines.splice(1, 0, [...widths.map((width) => '-'.repeat(Math.max(width, 3)))]);
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}
