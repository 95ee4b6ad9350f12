import { EXIT, type ExitCode } from '../command.ts';
import { createProgress } from '../progress.ts';
import { backfill } from './backfill.ts';
import type { Engine } from './engine.ts';
import { awaitNone, isOf } from './mutations.ts';
import { columnOf, describeColumn, type PropertyColumn, parseColumn, toAddStatement } from './property-column.ts';
import { readStanding, type StandingColumn } from './standing.ts';
import { refreshViews } from './views.ts';
import type { ColumnsWork } from './work.ts';

/** Each column costs every insert half a microsecond a row. */
export const COLUMNS_MAX = 50;

type Asked = Omit<PropertyColumn, 'since'>;

/** Adds the column, shows it in the views, and fills stored rows. Running it again continues unfinished work. */
export async function add(work: ColumnsWork): Promise<ExitCode> {
  const { engine, values, terminal, signal } = work;
  const asked = parseColumn(values);
  const column = columnOf(asked.name);
  if (await isStanding(engine, asked)) terminal.progress(`${column} stands already: what is not done of it goes on`);
  else await addColumn(work, asked);
  const { changed, broken } = await refreshViews(engine);
  if (changed.length > 0) terminal.progress(`whoever may read these views sees it: ${changed.join(', ')}`);
  for (const name of broken) terminal.progress(`view ${name} fails by itself, and was left as it is`);
  await backfill({ engine, column, progress: createProgress(terminal), signal });
  terminal.result(`${column}: ${describeColumn(asked)}; every part has it`);
  return EXIT.ok;
}

async function addColumn({ engine, wallClockMs, signal }: ColumnsWork, asked: Asked): Promise<void> {
  // Waits for the drop of a column with this name: its parts would count as filled.
  await awaitNone(engine, isOf('DROP', columnOf(asked.name)), { onLook: () => {}, signal });
  try {
    await engine.run(toAddStatement({ ...asked, since: new Date(wallClockMs()).toISOString() }));
  } catch (fault) {
    // Another command may have added it meanwhile.
    if (!(await isStanding(engine, asked))) throw fault;
  }
}

/** @throws Error when another column has the name, or there are as many columns as allowed */
async function isStanding(engine: Engine, asked: Asked): Promise<boolean> {
  const standing = await readStanding(engine);
  const found = standing.find(({ name }) => name === asked.name);
  if (found === undefined && standing.length >= COLUMNS_MAX)
    throw new Error(`there are ${COLUMNS_MAX} property columns already: drop one that nobody asks about first`);
  if (found === undefined) return false;
  if (found.column !== null && describeColumn(found.column) === describeColumn(asked)) return true;
  throw new Error(
    `${columnOf(asked.name)} stands already, and is ${toWords(found)}: take another name, or drop that one first`,
  );
}

const toWords = ({ column, type }: StandingColumn) =>
  column === null ? `${type}, added by other means` : describeColumn(column);
