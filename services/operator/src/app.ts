import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Command,
  CommanderError,
  type CommandUnknownOpts,
  Help,
  InvalidArgumentError,
  type Option,
} from '@commander-js/extra-typings';
import { redactSecrets } from '@playline/runtime';
import {
  type CreateCommand,
  command,
  EmptiedError,
  Ended,
  EXIT,
  type ExitCode,
  type Terminal,
  UnreachableError,
  UsageError,
} from './command.ts';
import { printLines } from './terminal.ts';

const HELP_WIDTH = 120;

/** Runs the command in `args`. An error is printed and mapped to an exit code. */
export async function runCommand(commands: readonly CreateCommand[], args: readonly string[], terminal: Terminal) {
  const program = createProgram(commands, terminal);
  let called: CommandUnknownOpts = program;
  program.hook('preAction', (_, action) => {
    called = action;
  });
  for (const command of withSubcommands(program)) {
    command.exitOverride((error) => {
      called = command;
      throw error;
    });
  }
  try {
    await program.parseAsync(args[0] === 'help' ? ['--help'] : [...args], { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    return explain(error, called, terminal);
  }
}

/** Creates the program with its commands; `explain` handles command errors. */
export function createProgram(commands: readonly CreateCommand[], terminal: Terminal): CommandUnknownOpts {
  const program = new Command('operator').description('Command-line tools for operating a Playline deployment.');
  for (const create of commands) program.addCommand(create(terminal));
  const printHelp = terminal.text ?? terminal.result;
  for (const command of withSubcommands(program)) {
    if (command.commands.length > 0) command.usage('<command> [options]');
    for (const option of command.options) requireValue(option);
    command
      .helpCommand(false)
      .configureHelp({ commandUsage: usageOf, optionDescription })
      .configureOutput({
        writeOut: (text) => printHelp(text.trimEnd()),
        writeErr: (text) => printLines(terminal.progress, text.trimEnd()),
        outputError: () => {},
        getOutHelpWidth: () => HELP_WIDTH,
        getErrHelpWidth: () => HELP_WIDTH,
      });
  }
  return program;
}

export function withSubcommands(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/** Makes an option refuse empty values, such as unset shell variables, and values that look like options. */
function requireValue(option: Option): void {
  const parse = option.parseArg;
  if (!option.required && !option.optional) return;
  option.parseArg = (value, previous) => {
    if (value === '' || value.startsWith('--')) throw new InvalidArgumentError('Expected a value.');
    return parse === undefined ? (value as typeof previous) : parse(value, previous);
  };
}

function optionDescription(option: Option): string {
  return `${Help.prototype.optionDescription(option)}${option.mandatory ? ' (required)' : ''}`;
}

function usageOf(command: CommandUnknownOpts): string {
  const [name, ...rest] = pathOf(command).split(' ');
  return name === '' ? 'npm run <command>' : ['npm run', name, '--', ...rest, command.usage()].join(' ');
}

/** Returns the full name of a subcommand, such as `keys create`. */
export function pathOf(command: CommandUnknownOpts): string {
  const names: string[] = [];
  for (let each: CommandUnknownOpts | null = command; each?.parent; each = each.parent) names.unshift(each.name());
  return names.join(' ');
}

/** Removes argument values, which may be ids or secrets, from a Commander error message. */
function withoutValues(message: string): string {
  return message
    .replace(/ argument '.*' is invalid\./, ' is invalid.')
    .replace(/(unknown option '-[^=']*)=.*'/, "$1'")
    .replace(/(too many arguments.* but got \d+): .*/, '$1.');
}

function explain(error: unknown, command: CommandUnknownOpts, terminal: Terminal): ExitCode {
  if (error instanceof Ended) return error.code;
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  // Commander has printed the help because the subcommand is missing.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT.usage;
  const path = pathOf(command);
  const text = redactSecrets(error instanceof Error ? error.message : String(error));
  if (error instanceof CommanderError || error instanceof UsageError) {
    const message = withoutValues(text.replace(/^error: /, '').replaceAll('\n', ' '));
    const [name, ...rest] = path.split(' ');
    const hint = path === '' ? 'npm run help' : ['npm run', name, '--', ...rest, '--help'].join(' ');
    terminal.progress(`${path === '' ? '' : `${path}: `}${message} (see ${hint})`);
    return EXIT.usage;
  }
  terminal.progress(`${path}: ${text}`);
  if (error instanceof EmptiedError) return EXIT.emptied;
  return error instanceof UnreachableError ? EXIT.unreachable : EXIT.failed;
}

/** @param folder root of the checkout, whose package.json lists all commands */
export const createCompletionCommand =
  (folder: string): CreateCommand =>
  (terminal) =>
    command('completion', 'print a bash completion script for npm run <command> -- …')
      .addHelpText(
        'after',
        '\nTo enable completion, run: source <(npm run --silent completion). It replaces other npm completions.',
      )
      .action((_, self) => {
        const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts: object };
        const names = Object.keys(scripts).filter((name) => !name.includes(' '));
        printLines(terminal.result, toBash(names, self.parent!));
      });

/** Creates the bash script with the completions of each command. */
function toBash(names: readonly string[], program: CommandUnknownOpts): string {
  const cases = withSubcommands(program)
    .filter((each) => each !== program)
    // The first matching pattern applies, so subcommands precede their command.
    .toReversed()
    .map((each) => {
      const completions = [
        ...each.commands.map((sub) => sub.name()),
        ...each.options.map(({ long }) => long),
        '--help',
      ];
      return `    "${pathOf(each)} "*) options="${completions.join(' ')}" ;;`;
    });
  return `_playline() {
  local current=\${COMP_WORDS[COMP_CWORD]} options=
  [ "\${COMP_WORDS[1]}" = run ] || return
  if [ "$COMP_CWORD" -eq 2 ]; then
    options="${names.join(' ')}"
  elif [ "$COMP_CWORD" -ge 4 ] && [ "\${COMP_WORDS[3]}" = -- ]; then
    case "\${COMP_WORDS[2]} \${COMP_WORDS[@]:4:COMP_CWORD-4} " in
${cases.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}
complete -o default -F _playline npm`;
}
