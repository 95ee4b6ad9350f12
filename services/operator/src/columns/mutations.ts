import { pauseOrThrow, quoteText } from '@playline/stores';
import type { Engine } from './engine.ts';

/** A change of the rows of `events` that the engine has not finished. */
export interface Unfinished {
  readonly id: string;
  readonly command: string;
  /** The name of the engine's fault; empty without one. The message is left out, since it may contain a value. */
  readonly fault: string;
}

const POLL_MIN_MS = 20;
const POLL_MAX_MS = 1_000;

export async function readUnfinished(engine: Engine): Promise<Unfinished[]> {
  const rows = await engine.read(`SELECT mutation_id, command, latest_fail_reason FROM system.mutations
    WHERE database = currentDatabase() AND table = 'events' AND NOT is_done AND NOT is_killed ORDER BY create_time`);
  return rows.map(([id, command, reason]) => ({
    id: String(id),
    command: String(command),
    fault: reason === '' ? '' : (/\(([A-Z0-9_]+)\)/.exec(String(reason))?.[1] ?? 'UNKNOWN'),
  }));
}

/** Whether a change is about this column. @param column with its prefix */
export const isOf = (word: 'MATERIALIZE' | 'DROP', column: string) => {
  const pattern = new RegExp(`\\b${word} COLUMN \`?${column}\\b`);
  return ({ command }: Unfinished): boolean => pattern.test(command);
};

export async function kill(engine: Engine, mutations: readonly Unfinished[]): Promise<void> {
  if (mutations.length === 0) return;
  const ids = mutations.map(({ id }) => quoteText(id)).join(', ');
  await engine.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = 'events' AND mutation_id IN (${ids}) SYNC`,
  );
}

interface Wait {
  /** Called at every look with the unfinished changes. */
  readonly onLook: (waitedFor: readonly Unfinished[]) => void | Promise<void>;
  /** Ends the wait; the changes go on. */
  readonly signal: AbortSignal;
}

/** Waits until no such change is left. @throws the reason of the signal */
export async function awaitNone(
  engine: Engine,
  isWaitedFor: (mutation: Unfinished) => boolean,
  { onLook, signal }: Wait,
): Promise<void> {
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    signal.throwIfAborted();
    const left = (await readUnfinished(engine)).filter(isWaitedFor);
    if (left.length === 0) return;
    await onLook(left);
    await pauseOrThrow(pauseMs, signal);
  }
}
