import type { ClickHouseAccount } from '@playline/stores';
import { awaitStore } from '../await-store.ts';
import { add } from '../columns/add.ts';
import { drop } from '../columns/drop.ts';
import { createEngine } from '../columns/engine.ts';
import { list } from '../columns/list.ts';
import { parseColumn, parseName } from '../columns/property-column.ts';
import type { ColumnsWork } from '../columns/work.ts';
import { type Command, EXIT, type ExitCode, parseOptions, type Terminal, wordOf } from '../command.ts';

export interface ColumnsContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly wallClockMs: () => number;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator columns add   --name N --path P --type T [--default V]
       operator columns list  [--json]
       operator columns drop  --name N [--yes]          (npm run columns -- list)

A property of events as a column of its own: read by its name and type, filtered without reading JSON.

add   adds column property_N to events, shows it in the views, and fills the rows that stand. Rows that come get it at
      their insert. While standing rows are being filled it is worked out as they are read: answers are right from the
      first moment. May run beside everything else, and be ended and begun again: the same again goes on. One of the name
      that is of another path, type or default is refused. Whoever may read analysis_events sees it, also who may not read
      raw ids: make no column of a property that names somebody
list  every such column: path, type, default, since when, parts still to be filled, bytes on disk
drop  takes it from the views, then from the table; asks first. The properties themselves stay

  --name coins            small letters, digits and _, of which it makes property_coins
  --path economy.coins    where it stands in the properties; a dot of a name is \\. and a backslash \\\\
  --type                  Int64, Float64, String, LowCardinality(String) for a text with up to some ten thousand different
                          values, Bool, or DateTime for a text such as 2026-01-02T03:04:05Z, which is kept in milliseconds
  --default=0             what stands where the property is absent or of another kind; NULL without it
  --yes                   drop: without asking        --json   list: one line of JSON each

Needs CLICKHOUSE_URL with the account of operators, or a stack that runs here (.playline/stack.json).

Exit code: 0 done, 1 it failed, stands as another or is not there, or you said no, 2 wrong words, 3 ClickHouse does not
answer.`;

const text = { type: 'string' } as const;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  readonly act: (work: ColumnsWork) => Promise<ExitCode>;
  /** Checks the arguments before any request. @throws UsageError */
  readonly check: (values: ColumnsWork['values']) => void;
}

const WORDS: Readonly<Record<string, Word>> = {
  add: { options: { name: text, path: text, type: text, default: text }, act: add, check: parseColumn },
  list: { options: { json: { type: 'boolean', default: false } }, act: list, check: () => {} },
  drop: { options: { name: text, yes: { type: 'boolean', default: false } }, act: drop, check: parseName },
};

export function createColumnsCommand({ clickhouse, wallClockMs, stop }: ColumnsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values } = parseOptions(rest, word.options);
    word.check(values);
    const engine = createEngine(clickhouse());
    await awaitStore('ClickHouse', async () => (await engine.read('SELECT 1')).length === 1);
    try {
      return await word.act({ engine, values, terminal, wallClockMs, signal: stop });
    } catch (fault) {
      if (!stop.aborted) throw fault;
      terminal.progress('ended before it was done: nothing is half done, say the same again');
      return EXIT.failed;
    }
  };
  return { name: 'columns', summary: 'properties of events as columns: add, list, drop', help: HELP, run };
}
