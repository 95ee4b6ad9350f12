import { setTimeout as delay } from 'node:timers/promises';
import { isAccepted } from './book.ts';
import { type ShownMint, walkList } from './lists.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

/** What the interface shows of the run, by reference id. */
export type ShownMints = ReadonlyMap<string, ShownMint>;

/** Cursors in front of the run's first request of each collection; null: from the beginning. */
export type FirstCursors = Readonly<Record<(typeof COLLECTIONS)[number], string | null>>;

const PAGE_SIZE = 200;
const POLL_MS = 1_500;

/** Reads all requests of the run. */
export async function readShown(stage: MintStage, from: FirstCursors): Promise<ShownMints> {
  const shown = new Map<string, ShownMint>();
  for (const collection of COLLECTIONS) {
    const walk = { collection, pageSize: PAGE_SIZE, from: from[collection], mayComeAgain: true };
    const { own } = await walkList(stage, walk);
    // The later one of two attempts comes later.
    for (const request of own) shown.set(request.reference_id, request);
  }
  return shown;
}

/**
 * Waits until everything accepted has a result, or nothing has changed for the time allowed. A failed request that was
 * accepted again counts as open until it is shown as accepted.
 */
export async function awaitEnd(stage: MintStage, from: FirstCursors, again: ReadonlySet<string>): Promise<ShownMints> {
  const { book, options } = stage;
  let [before, changedAt] = ['', performance.now()];
  for (;;) {
    const shown = await readShown(stage, from);
    const open = book.entries().filter((entry) => {
      const request = shown.get(entry.asset.referenceId);
      if (request === undefined) return isAccepted(entry);
      // The tables are some seconds behind, so the result shown may be that of the earlier attempt.
      return request.status === 'pending' || (request.status === 'failed' && again.has(request.reference_id));
    });
    options.onProgress(toProgress(shown, open.length));
    if (open.length === 0) return shown;
    const states = [...shown.values()].map(({ reference_id, status }) => `${reference_id}${status}`).join();
    if (states !== before) [before, changedAt] = [states, performance.now()];
    if (performance.now() - changedAt > options.settleIdleMaxMs) return shown;
    await delay(POLL_MS);
  }
}

function toProgress(shown: ShownMints, open: number): string {
  const counts = Map.groupBy(shown.values(), ({ status }) => status);
  const countOf = (status: ShownMint['status']) => counts.get(status)?.length ?? 0;
  return `${countOf('succeeded')} are minted, ${countOf('failed')} have failed, ${open} are open`;
}
