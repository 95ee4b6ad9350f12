import { EXIT, type ExitCode, isMeant } from '../command.ts';
import { createProgress } from '../progress.ts';
import type { Engine } from './engine.ts';
import { awaitNone, isOf, kill, readUnfinished } from './mutations.ts';
import { columnOf, parseName } from './property-column.ts';
import { readStanding } from './standing.ts';
import { findNaming, hideFromViews, refreshViews } from './views.ts';
import type { ColumnsWork } from './work.ts';

/** Removes the column from the views, then from the table, and waits until no file has it. */
export async function drop(work: ColumnsWork): Promise<ExitCode> {
  const { engine, values, terminal, signal } = work;
  const column = columnOf(parseName(values));
  const isThere = await stands(engine, column);
  const isGoing = (await readUnfinished(engine)).some(isOf('DROP', column));
  if (!isThere && !isGoing) throw new Error(`there is no ${column}: npm run columns -- list names those that are`);
  if (isThere && !(await isMeant(`This drops ${column}; the properties themselves stay.`, values, terminal))) {
    terminal.progress('nothing was dropped');
    return EXIT.failed;
  }
  if (isThere) await dropColumn(engine, column);
  const progress = createProgress(terminal);
  const onLook = () => progress(`${column} is gone; files that have it are being written without it`);
  await awaitNone(engine, isOf('DROP', column), { onLook, signal });
  terminal.result(`${column} is dropped`);
  return EXIT.ok;
}

const stands = async (engine: Engine, column: string) =>
  (await readStanding(engine)).some(({ name }) => columnOf(name) === column);

async function dropColumn(engine: Engine, column: string): Promise<void> {
  const naming = await findNaming(engine, column);
  if (naming.length > 0)
    throw new Error(`${column} is named by ${naming.join(', ')}: change or drop that first, it would fail without it`);
  await hideFromViews(engine, column);
  try {
    // The engine drops no column while it is being filled.
    await kill(engine, (await readUnfinished(engine)).filter(isOf('MATERIALIZE', column)));
    await engine.run(`ALTER TABLE events DROP COLUMN ${column} SETTINGS alter_sync = 0, mutations_sync = 0`);
  } catch (fault) {
    // The column still exists, so views show it again.
    await refreshViews(engine);
    throw fault;
  }
}
