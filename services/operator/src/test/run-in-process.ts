import { runCommand } from '../app.ts';
import type { CreateCommand, ExitCode, Terminal } from '../command.ts';

/** What a command has printed. */
export interface CommandOutput {
  readonly code: ExitCode;
  readonly results: string[];
  /** Lines for people. */
  readonly progress: string;
}

/** Runs a command in this process. @param terminal what answers for a terminal; without it there is none */
export async function runInProcess(
  commands: readonly CreateCommand[],
  args: readonly string[],
  terminal: Pick<Terminal, 'prompt'> = {},
): Promise<CommandOutput> {
  const [results, progress]: [string[], string[]] = [[], []];
  const code = await runCommand(commands, args, {
    ...terminal,
    result: (line) => void results.push(line),
    progress: (line) => void progress.push(line),
    isInteractive: false,
  });
  return { code, results, progress: progress.join('\n') };
}
