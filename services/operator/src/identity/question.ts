import { createIdentityKeyer, type IdentityKeyer, type People } from '@playline/people';
import { awaitStore } from '../await-store.ts';
import { numberOf, parseOptions, type Terminal, UsageError, type Values } from '../command.ts';
import type { IdentityTables } from './tables.ts';

/** What queries about identities need of a deployment. */
export interface QuestionContext {
  readonly openPeople: () => Promise<People>;
  readonly openTables: () => IdentityTables;
  /** The deployment's pepper. @throws UsageError or UnreachableError when it is not configured */
  readonly pepper: () => Buffer;
}

/** Parses the arguments of a query. A surplus argument may be part of an id, so it is not repeated. */
export function parseQuestion(args: readonly string[], options: Parameters<typeof parseOptions>[1]): Values {
  const { values, words } = parseOptions(args, options, args.length);
  if (words.length > 1) throw new UsageError('a word too many: an id with spaces stands in quotes');
  return values;
}

/** The pepper is read with the first id: a key needs none. */
export function createOpenKeyer({ pepper }: Pick<QuestionContext, 'pepper'>): () => IdentityKeyer {
  let keyer: IdentityKeyer | null = null;
  return () => {
    keyer ??= createIdentityKeyer(pepper());
    return keyer;
  };
}

/** Option of queries that read much of a table. */
export const QUERY_OPTIONS = { 'query-seconds': { type: 'string' } } as const;

/** Time limit of a query in seconds. @throws UsageError */
export function querySecondsOf(values: Values): number {
  return Math.trunc(numberOf(values, 'query-seconds', { min: 1, max: 300, fallback: 30 }));
}

/** The tables, once they answer. @throws UnreachableError */
export async function awaitTables({ openTables }: Pick<QuestionContext, 'openTables'>): Promise<IdentityTables> {
  const tables = openTables();
  await awaitStore('ClickHouse', () => tables.answers());
  return tables;
}

/** Prints a sentence for people; with `--json` it is not part of the result. */
export function say(terminal: Terminal, values: Values, sentence: string): void {
  if (values.json === true) terminal.progress(sentence);
  else terminal.result(sentence);
}

/** Epoch milliseconds as text. */
export const toTimeText = (ms: number): string => new Date(ms).toISOString();
