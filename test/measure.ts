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
