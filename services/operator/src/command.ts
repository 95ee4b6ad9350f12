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
  readonly prompt?: (question: string) => Promise<string>;
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
    if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
    return numberFrom(min, max)(text);
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
  if (terminal.prompt === undefined) throw new UsageError(`${effect} There is no terminal to confirm at: use --yes`);
  return (await terminal.prompt(`${effect} Type yes to continue: `)).trim().toLowerCase() === 'yes';
}
