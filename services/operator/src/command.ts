import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** Where a command writes: results to standard output, progress to standard error. */
export interface Terminal {
  result(line: string): void;
  progress(line: string): void;
  /** Progress goes to a person, who may see a line each second. */
  readonly isInteractive: boolean;
  /** Asks the person at the terminal; absent where there is none. */
  readonly ask?: (question: string) => Promise<string>;
}

export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One command of the operator: `operator <name> …`. */
export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Usage and options. */
  readonly help: string;
  run(args: readonly string[], terminal: Terminal): Promise<ExitCode>;
}

/** The words of the command line are wrong; the message says which and what would be right. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Something that the command needs does not answer; the message says how to mend it. Exit code 3. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Of an option that may be given several times a list. */
type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/**
 * Reads options and at most `wordsMax` other words.
 * @throws UsageError for an unknown option, an option without its value, or a word too many
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

/** @throws UsageError unless the option is a number within inclusive bounds; `fallback` when it was not given */
export function numberOf(values: Values, name: string, rule: { min: number; max: number; fallback: number }): number {
  const text = values[name];
  if (text === undefined) return rule.fallback;
  const value = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN;
  if (!(value >= rule.min && value <= rule.max))
    throw new UsageError(`--${name}: expected a number from ${rule.min} to ${rule.max}`);
  return value;
}

/**
 * What does the work of a command's first word.
 * @param words all that the command knows
 * @throws UsageError that names them; what was said is not repeated, since an id may stand there by mistake
 */
export function wordOf<W>(words: Readonly<Record<string, W>>, name: string): W {
  const word = Object.hasOwn(words, name) ? words[name] : undefined;
  if (word !== undefined) return word;
  throw new UsageError(`expected one of these words first: ${Object.keys(words).join(', ')}`);
}

/** @throws UsageError unless the option is one of `choices`; `fallback` when it was not given, if there is one */
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

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Asks the person at the terminal before something is done that cannot be undone; `--yes` is the answer given before.
 * @param what what it would do, a sentence
 * @throws UsageError where nobody is there to be asked
 */
export async function isMeant(what: string, values: Values, terminal: Terminal): Promise<boolean> {
  if (values.yes === true) return true;
  if (terminal.ask === undefined) throw new UsageError(`${what} Nobody is there to be asked: say --yes`);
  return (await terminal.ask(`${what} Type yes to go on: `)).trim().toLowerCase() === 'yes';
}
