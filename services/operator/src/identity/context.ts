/** Shared parts of the identity commands. */
import { type CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { createIdentityKeyer, type IdentityKeyer, type People } from '@playline/people';
import { awaitStore } from '../await-store.ts';
import { type JsonOption, type Terminal, UsageError, wholeNumberFrom } from '../command.ts';
import type { IdentityTables } from './tables.ts';

export interface QueryContext {
  readonly openPeople: () => Promise<People>;
  readonly openTables: () => IdentityTables;
  /** @throws UsageError or UnreachableError when no pepper is configured */
  readonly pepper: () => Buffer;
}

/** Omits excess arguments and unknown subcommands from errors, because they may be personal ids. */
export function hideArguments(created: CommandUnknownOpts): CommandUnknownOpts {
  for (const each of created.commands) each.allowExcessArguments();
  return created
    .allowExcessArguments()
    .hook('preAction', (_, { args, commands, registeredArguments }) => {
      if (commands.length === 0 && args.length > registeredArguments.length)
        throw new UsageError('too many arguments: quote ids that contain spaces');
    })
    .action(() => {
      if (created.args.length === 0) created.help({ error: true });
      throw new UsageError(`expected a subcommand: ${created.commands.map((each) => each.name()).join(', ')}`);
    });
}

/** Reads the pepper on first use, because keys do not need it. */
export function createOpenKeyer({ pepper }: Pick<QueryContext, 'pepper'>): () => IdentityKeyer {
  let keyer: IdentityKeyer | null = null;
  return () => {
    keyer ??= createIdentityKeyer(pepper());
    return keyer;
  };
}

export const querySecondsOption = () =>
  new Option('--query-seconds <number>', 'time limit per table query, in seconds, up to 300')
    .argParser(wholeNumberFrom(1, 300))
    .default(30);

/** @throws UnreachableError */
export async function awaitTables({ openTables }: Pick<QueryContext, 'openTables'>): Promise<IdentityTables> {
  const tables = openTables();
  await awaitStore('ClickHouse', () => tables.isReachable());
  return tables;
}

/** Prints a summary as a result, or as progress if `--json` is set. */
export function printSummary(terminal: Terminal, { json = false }: JsonOption, sentence: string): void {
  if (json) terminal.progress(sentence);
  else terminal.result(sentence);
}

export const toTimeText = (ms: number): string => new Date(ms).toISOString();
