import { redactSecrets } from '@playline/runtime';
import {
  type Command,
  EmptiedError,
  EXIT,
  type ExitCode,
  type Terminal,
  UnreachableError,
  UsageError,
} from './command.ts';
import { printLines } from './terminal.ts';

/**
 * Runs the command that the first argument names. Never throws: faults become a sentence and an exit code.
 * @returns 0 done, 1 failed, 2 wrong arguments, 3 a required service does not answer, 4 Redis has lost what it held
 */
export async function runCommand(
  commands: readonly Command[],
  args: readonly string[],
  terminal: Terminal,
): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === 'help') {
    (terminal.text ?? terminal.result)(overview(commands));
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    terminal.progress(`unknown command '${name}'`);
    printLines(terminal.progress, `\n${overview(commands)}`);
    return EXIT.usage;
  }
  if (rest.includes('--help')) {
    (terminal.text ?? terminal.result)(command.help);
    return EXIT.ok;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    return explain(error, command, terminal);
  }
}

function explain(error: unknown, command: Command, terminal: Terminal): ExitCode {
  const text = redactSecrets(error instanceof Error ? error.message : String(error));
  if (error instanceof UsageError) {
    terminal.progress(`${command.name}: ${text}`);
    printLines(terminal.progress, `\n${command.help}`);
    return EXIT.usage;
  }
  terminal.progress(`${command.name}: ${text}`);
  if (error instanceof EmptiedError) return EXIT.emptied;
  return error instanceof UnreachableError ? EXIT.unreachable : EXIT.failed;
}

function overview(commands: readonly Command[]): string {
  const width = commands
    .map(({ name }) => name.length)
    .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `usage: operator <command> [options]\n\n${lines.join('\n')}\n\noperator <command> --help tells the options of one.`;
}
