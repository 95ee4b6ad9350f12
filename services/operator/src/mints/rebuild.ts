import { catchUpMints, type MintLog, type MintState, type MintView } from '@playline/mints';

export interface MintRebuildParts {
  readonly view: MintView;
  readonly logs: { readonly states: MintLog; readonly requests: MintLog };
  /** Contents of the tables, in pieces. */
  readonly stored: () => AsyncIterable<readonly MintState[]>;
}

/** Rows per call of Redis. */
export const PIECE = 200;

/**
 * Copies everything known of mint requests into Redis: the tables first, then the whole logs. Nothing is deleted, and
 * no request is accepted until it is done. After a kill, run it again, or activity writers finish it.
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
