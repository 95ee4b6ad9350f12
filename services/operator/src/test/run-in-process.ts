import { runCommand } from '../app.ts';
import type { CreateCommand, ExitCode, Terminal } from '../command.ts';

export interface CommandOutput {
  readonly code: ExitCode;
  readonly results: string[];
  readonly progress: string;
}

/** Runs a command in this process. @param terminal simulates an interactive terminal */
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
