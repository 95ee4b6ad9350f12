import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { createIdentityKeyer, type IdentityKeyer, type People } from '@playline/people';
import { awaitStore } from '../await-store.ts';
import { type Terminal, UsageError, wholeNumberFrom } from '../command.ts';
import type { IdentityTables } from './tables.ts';

/** What queries about identities need of a deployment. */
export interface QueryContext {
  readonly openPeople: () => Promise<People>;
  readonly openTables: () => IdentityTables;
  /** The deployment's pepper. @throws UsageError or UnreachableError when it is not configured */
  readonly pepper: () => Buffer;
}

/** Makes errors about surplus arguments and unknown subcommands not repeat them: they may be the id of a person. */
export function hidingArguments(created: CommandUnknownOpts): CommandUnknownOpts {
  for (const each of created.commands) each.allowExcessArguments();
  return created
    .allowExcessArguments()
    .hook('preAction', (_, { args, commands, registeredArguments }) => {
      if (commands.length === 0 && args.length > registeredArguments.length)
        throw new UsageError('too many arguments: an id with spaces needs quotes');
    })
    .action(() => {
      if (created.args.length === 0) created.help({ error: true });
      throw new UsageError(`expected a subcommand: ${created.commands.map((each) => each.name()).join(', ')}`);
    });
}

/** The pepper is read with the first id: a key needs none. */
export function createOpenKeyer({ pepper }: Pick<QueryContext, 'pepper'>): () => IdentityKeyer {
  let keyer: IdentityKeyer | null = null;
  return () => {
    keyer ??= createIdentityKeyer(pepper());
    return keyer;
  };
}

/** Option of queries that read much of a table. */
export const querySecondsOption = () =>
  new Option('--query-seconds <number>', 'time limit of a query of the tables, at most 300')
    .argParser(wholeNumberFrom(1, 300))
    .default(30);

/** The tables, once they answer. @throws UnreachableError */
export async function awaitTables({ openTables }: Pick<QueryContext, 'openTables'>): Promise<IdentityTables> {
  const tables = openTables();
  await awaitStore('ClickHouse', () => tables.isReachable());
  return tables;
}

/** Prints a sentence for people; with `--json` it is not part of the result. */
export function printSummary(terminal: Terminal, { json = false }: JsonOptions, sentence: string): void {
  if (json) terminal.progress(sentence);
  else terminal.result(sentence);
}

/** The option of commands that can print JSON. */
export interface JsonOptions {
  readonly json?: boolean | undefined;
}

/** Epoch milliseconds as text. */
export const toTimeText = (ms: number): string => new Date(ms).toISOString();
