import { catchUpMints, type MintLog, type MintState, type MintView } from '@playline/mints';

export interface MintRebuildParts {
  readonly view: MintView;
  readonly logs: { readonly states: MintLog; readonly requests: MintLog };
  /** What the tables have, in pieces. */
  readonly stored: () => AsyncIterable<readonly MintState[]>;
}

/** Rows of one step of Redis. */
export const PIECE = 200;

/**
 * Brings everything that is known of mint requests into Redis: what the tables have, then the logs from their beginnings.
 * Nothing is taken out, and until it is done nothing is accepted. Whatever it is killed at, it is run again, or activity
 * writers finish it.
 */
export async function rebuildMints({
  view,
  logs,
  stored,
}: MintRebuildParts): Promise<{ rows: number; records: number }> {
  await view.forgetPlaces();
  let rows = 0;
  for await (const states of stored()) {
    await view.restore(states);
    rows += states.length;
  }
  const records = await catchUpMints(view, logs);
  return { rows, records };
}
