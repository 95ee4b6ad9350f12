/** Shared parts of all commands: terminal, options, confirmation, errors and exit codes. */
import { Command, type CommandUnknownOpts, InvalidArgumentError, Option } from '@commander-js/extra-typings';

/** Prints results to standard output and progress to standard error. */
export interface Terminal {
  result(line: string): void;
  progress(line: string): void;
  /** Prints trusted multi-line text, such as help; defaults to `result`. */
  readonly text?: (text: string) => void;
  /** Whether standard error is a terminal. */
  readonly isInteractive: boolean;
  /** Undefined if standard input is not a terminal. */
  readonly prompt?: (prompt: string) => Promise<string>;
}

export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Creates a command with its subcommands, options and help: `operator <name> …`. */
export type CreateCommand = (terminal: Terminal) => CommandUnknownOpts;

/** Ends a command that has already printed why it failed. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly code: ExitCode;

  constructor(code: ExitCode) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/** @throws Ended unless the code is 0 */
export function endWith(code: ExitCode): void {
  if (code !== EXIT.ok) throw new Ended(code);
}

export interface Deps<C> {
  readonly context: C;
  readonly terminal: Terminal;
}

/** Invalid arguments: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A required service does not respond: exit code 3. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Redis has lost its data: exit code 4. */
export class EmptiedError extends Error {
  override readonly name = 'EmptiedError';
}

/** Reports a write whose result is unknown. @param next what the user should do */
export const throwUnconfirmed =
  (what: string, next: string) =>
  ({ message }: Error): never => {
    throw new UnreachableError(`Kafka did not confirm ${what} (${message}): ${next}`);
  };

/** Creates a parser for numbers within inclusive bounds. @throws InvalidArgumentError */
export const numberFrom =
  (min: number, max: number) =>
  (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`Expected a number from ${min} to ${max}.`);
    return value;
  };

/** Creates a parser for integers within inclusive bounds. @throws InvalidArgumentError */
export const wholeNumberFrom =
  (min: number, max: number) =>
  (text: string): number => {
    if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
    return numberFrom(min, max)(text);
  };

export const command = (name: string, description: string): Command => new Command(name).description(description);

export interface JsonOption {
  readonly json?: boolean | undefined;
}

export const jsonOption = () => new Option('--json', 'print each result as a line of JSON');
export const jsonCommand = (name: string, description: string) => command(name, description).addOption(jsonOption());
export const plural = (count: number, singular: string) => `${count} ${singular}${count === 1 ? '' : 's'}`;
export const yesOption = () => new Option('--yes', 'skip the confirmation prompt');

/** Prints `value` as a line of JSON if `--json` is set, and `text` otherwise. */
export function printResult(
  terminal: Terminal,
  { json = false }: JsonOption,
  value: unknown,
  text: string | readonly string[],
): void {
  for (const line of json ? [JSON.stringify(value)] : [text].flat()) terminal.result(line);
}

/**
 * Prompts for confirmation unless `--yes` is set.
 * @param effect sentence that describes what will happen
 * @throws UsageError without a terminal
 */
export async function isConfirmed(
  effect: string,
  { yes = false }: { readonly yes?: boolean | undefined },
  terminal: Terminal,
): Promise<boolean> {
  if (yes) return true;
  if (terminal.prompt === undefined)
    throw new UsageError(`${effect} No terminal is available for confirmation: use --yes`);
  return (await terminal.prompt(`${effect} Type yes to continue: `)).trim().toLowerCase() === 'yes';
}

/** Prompts like `isConfirmed`. @throws Ended when the user declines */
export async function confirm(...args: Parameters<typeof isConfirmed>): Promise<void> {
  if (await isConfirmed(...args)) return;
  args[2].progress('nothing was changed');
  throw new Ended(EXIT.failed);
}
