import { readRecipes } from '@playline/events';
import { runCommand } from '../../services/operator/src/app.ts';
import { createColumnsCommand } from '../../services/operator/src/commands/columns.ts';
import type { OwnDatabase } from './own-database.ts';

const COMMAND = /`npm run columns -- ([^`]+)`/g;

/** Runs every `columns` command from the recipe descriptions, exactly as written. */
export async function addPropertyColumns({ target }: OwnDatabase): Promise<void> {
  const stop = new AbortController().signal;
  const columns = createColumnsCommand({ clickhouse: () => target, wallClockMs: Date.now, stop });
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  const about = readRecipes().flatMap((recipe) => recipe.about);
  for (const [, text = ''] of about.join('\n').matchAll(COMMAND)) {
    const args = (text.match(/'[^']*'|\S+/g) ?? []).map((arg) => arg.replaceAll("'", ''));
    const code = await runCommand([columns], ['columns', ...args], {
      result: report,
      progress: report,
      isInteractive: false,
    });
    if (code !== 0) throw new Error(`npm run columns -- ${text} exited with ${code}: ${lines.join('; ')}`);
  }
}
