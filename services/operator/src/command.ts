import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { Command, type CommandUnknownOpts, InvalidArgumentError } from '@commander-js/extra-typings';

/** Output of a command: results to standard output, progress to standard error. */
export interface Terminal {
  result(line: string): void;
  progress(line: string): void;
  /** Prints a text of several lines in which nothing comes from outside, such as help. Absent: as a result. */
  readonly text?: (text: string) => void;
  /** Whether a person watches the progress, who may see a line each second. */
  readonly isInteractive: boolean;
  /** Asks the person at the terminal; absent without a terminal. */
  readonly ask?: (question: string) => Promise<string>;
}

export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Makes a command with its subcommands, options and help: `operator <name> …`. */
export type CreateCommand = (terminal: Terminal) => CommandUnknownOpts;

/** A command that failed and has already printed why. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly code: ExitCode;

  constructor(code: ExitCode) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/** Ends the command with an exit code. @throws Ended unless it is 0 */
export function endWith(code: ExitCode): void {
  if (code !== EXIT.ok) throw new Ended(code);
}

/** The arguments are wrong; the message says which, and what would be right. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A service that the command needs does not answer; the message says how to fix that. Exit code 3. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Redis has lost what it held; the message says how to put it back. Exit code 4. */
export class EmptiedError extends Error {
  override readonly name = 'EmptiedError';
}

/**
 * Makes the fault of a write that was not confirmed: it may have taken place.
 * @param what was written @param next what the user does now
 */
export const unconfirmed =
  (what: string, next: string) =>
  ({ message }: Error): never => {
    throw new UnreachableError(`Kafka did not confirm ${what} (${message}): ${next}`);
  };

/**
 * Parses an option as a number within inclusive bounds.
 * @throws InvalidArgumentError
 */
export const numberFrom =
  (min: number, max: number) =>
  (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`Expected a number from ${min} to ${max}.`);
    return value;
  };

/** As `numberFrom`, for whole numbers. @throws InvalidArgumentError */
export const wholeNumberFrom =
  (min: number, max: number) =>
  (text: string): number => {
    const value = numberFrom(min, max)(text);
    if (!Number.isInteger(value)) throw new InvalidArgumentError('Expected a whole number.');
    return value;
  };

/** A command or subcommand, to which options and an action are added. */
export const command = (name: string, description: string): Command => new Command(name).description(description);

/**
 * Asks for confirmation before something that cannot be undone; `--yes` confirms in advance.
 * @param effect a sentence
 * @throws UsageError without a terminal
 */
export async function isConfirmed(
  effect: string,
  { yes = false }: { readonly yes?: boolean | undefined },
  terminal: Terminal,
): Promise<boolean> {
  if (yes) return true;
  if (terminal.ask === undefined) throw new UsageError(`${effect} There is no terminal to confirm at: use --yes`);
  return (await terminal.ask(`${effect} Type yes to continue: `)).trim().toLowerCase() === 'yes';
}

// LEGACY until every command is converted.
export interface OldCommand {
  readonly name: string;
  readonly summary: string;
  readonly help: string;
  run(args: readonly string[], terminal: Terminal): Promise<ExitCode>;
}
export type { OldCommand as Command };

/** The options of a command as `parseOptions` reads them. One that may be repeated has a list. */
export type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/**
 * Parses options and at most `wordsMax` other arguments.
 * @throws UsageError for an unknown option, an option without its value, or too many arguments
 */
export function parseOptions(
  args: readonly string[],
  options: ParseArgsOptionsConfig,
  wordsMax = 0,
): { values: Values; words: readonly string[] } {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    if (positionals.length > wordsMax) throw new Error(`unexpected word '${positionals[wordsMax]}'`);
    return { values: values as Values, words: positionals };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new UsageError(text.split('. ')[0] ?? text);
  }
}

/** @throws UsageError unless the option is a number within inclusive bounds; `fallback` when it is absent */
export function numberOf(values: Values, name: string, rule: { min: number; max: number; fallback: number }): number {
  const text = values[name];
  if (text === undefined) return rule.fallback;
  const value = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN;
  if (!(value >= rule.min && value <= rule.max))
    throw new UsageError(`--${name}: expected a number from ${rule.min} to ${rule.max}`);
  return value;
}

/**
 * Finds the action that a command's first argument names.
 * @param words all actions of the command
 * @throws UsageError that lists them; it does not repeat the argument, which may be an id by mistake
 */
export function wordOf<W>(words: Readonly<Record<string, W>>, name: string): W {
  const word = Object.hasOwn(words, name) ? words[name] : undefined;
  if (word !== undefined) return word;
  throw new UsageError(`expected one of these words first: ${Object.keys(words).join(', ')}`);
}

/** @throws UsageError unless the option is one of `choices`; `fallback`, if there is one, when it is absent */
export function choiceOf<T extends string>(
  values: Values,
  name: string,
  rule: { choices: readonly T[]; fallback?: T },
): T {
  const value = values[name] ?? rule.fallback;
  const found = rule.choices.find((choice) => choice === value);
  if (found === undefined) throw new UsageError(`--${name}: expected ${rule.choices.join(' or ')}`);
  return found;
}

/** @throws UsageError without the option */
export function requiredOf(values: Values, name: string): string {
  const given = textOf(values, name);
  if (given === undefined) throw new UsageError(`--${name}: expected one`);
  return given;
}

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Asks for confirmation before something that cannot be undone; `--yes` confirms in advance.
 * @param what describes the effect, a sentence
 * @throws UsageError without a terminal
 */
export async function isMeant(what: string, values: Values, terminal: Terminal): Promise<boolean> {
  if (values.yes === true) return true;
  if (terminal.ask === undefined) throw new UsageError(`${what} Nobody is there to be asked: say --yes`);
  return (await terminal.ask(`${what} Type yes to go on: `)).trim().toLowerCase() === 'yes';
}
