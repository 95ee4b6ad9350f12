import type { Engine } from './engine.ts';
import { awaitNone, isOf, kill, type Unfinished } from './mutations.ts';
import { type MonthOfParts, readMonths, sumMonths } from './standing.ts';

export interface BackfillContext {
  readonly engine: Engine;
  /** Name of the column, with its prefix. */
  readonly column: string;
  readonly progress: (line: string) => void;
  /** Ends the wait; the month that is being written is finished by the engine. */
  readonly signal: AbortSignal;
}

/** A month is repeated when an old insert adds a part to it, but not for ever. */
const TURNS_MAX = 5;

/**
 * Writes the column into every part that lacks it, one month at a time, the newest first: a deletion then waits for one
 * month only. The parts themselves show what is left, so it may be interrupted, repeated and run in parallel.
 * @throws Error when the engine cannot write a part; the change is cancelled, since later ones would wait behind it
 */
export async function backfill(context: BackfillContext): Promise<void> {
  const turns = new Map<string, number>();
  for (;;) {
    await passOthers(context);
    const months = await readMonths(context.engine, context.column);
    const next = months.find(({ toDo }) => toDo > 0);
    if (next === undefined) return;
    const turn = (turns.get(next.month) ?? 0) + 1;
    if (turn > TURNS_MAX)
      throw new Error(`month ${next.month} was written ${TURNS_MAX} times and still lacks the column`);
    turns.set(next.month, turn);
    await writeMonth(context, months, next);
  }
}

/** Waits for changes of other kinds, such as deletions; those of a killed backfill of this column are continued. */
async function passOthers({ engine, column, progress, signal }: BackfillContext): Promise<void> {
  const isOwn = isOf('MATERIALIZE', column);
  const onLook = async (left: readonly Unfinished[]) => {
    await takeBackFailed(engine, left.filter(isOwn));
    const failing = left.find(({ fault }) => fault !== '');
    const words = failing === undefined ? '' : `; ${failing.id} fails with ${failing.fault}`;
    progress(`backfill: waits for ${left.length} other change(s) of events to end${words}`);
  };
  await awaitNone(engine, () => true, { onLook, signal });
}

async function writeMonth(
  { engine, column, progress, signal }: BackfillContext,
  months: readonly MonthOfParts[],
  next: MonthOfParts,
): Promise<void> {
  progress(toLine(months, next.month));
  await engine.run(
    `ALTER TABLE events MATERIALIZE COLUMN ${column} IN PARTITION ID '${next.month}' SETTINGS mutations_sync = 0`,
  );
  const onLook = async (left: readonly Unfinished[]) => {
    await takeBackFailed(engine, left);
    progress(toLine(await readMonths(engine, column), next.month));
  };
  await awaitNone(engine, isOf('MATERIALIZE', column), { onLook, signal });
}

function toLine(months: readonly MonthOfParts[], month: string): string {
  const { parts, toDo } = sumMonths(months);
  return `backfill: ${parts - toDo} of ${parts} parts have the column; writing ${month}`;
}

async function takeBackFailed(engine: Engine, own: readonly Unfinished[]): Promise<void> {
  const failed = own.find(({ fault }) => fault !== '');
  if (failed === undefined) return;
  await kill(engine, own);
  throw new Error(
    `the backfill failed with ${failed.fault}: answers are right all the same, only slower; mend it and say the same again`,
  );
}
