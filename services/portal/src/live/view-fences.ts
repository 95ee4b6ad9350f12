import type { ErasureRecords, StoredFence } from '@playline/erasure';
import type { QueryRows } from '@playline/stores';
import { askView, msOf } from '../reads/ask-view.ts';

/** ClickHouse gives the portal twenty thousand rows of an answer at most. */
const PAGE_ROWS = 10_000;
/** A fence can be read only a moment after the time that it bears, so the last seconds are read once more. */
const AGAIN_MS = 60_000;
/** Names what has been read whole, for whoever keeps track of it. */
const READ_WHOLE = 'read whole';

/**
 * The fences of one environment, over a view that asks for it by name: all of them first, and whenever nothing of them is
 * known to the reader, else those that were written since.
 */
export function createViewFences(query: QueryRows, environmentId: string): Pick<ErasureRecords, 'readFences'> {
  let newestMs = 0;
  const readPage = (after: string, sinceMs: number, signal?: AbortSignal) =>
    askView(
      query,
      {
        view: 'portal_fences',
        args: { environment: environmentId, after, since: sinceMs },
        columns: ['identity_id', msOf('cutoff_at'), 'toString(erasure_id)', msOf('fenced_at')],
        tail: 'ORDER BY identity_id',
        rowsMax: PAGE_ROWS,
        toRow: (values) => toFence(environmentId, values),
      },
      signal === undefined ? {} : { signal },
    );
  return {
    readFences: async function* ({ knownParts, signal } = {}) {
      const sinceMs = knownParts?.has(READ_WHOLE) === true ? newestMs - AGAIN_MS : 0;
      for (let after = ''; ; ) {
        const page = await readPage(after, Math.max(0, sinceMs), signal);
        for (const fence of page) newestMs = Math.max(newestMs, fence.fencedAtMs);
        yield* page;
        if (page.length < PAGE_ROWS) return;
        // One identity has a few lines at most. The last identity of an answer may lack some: it is read again.
        after = before(page.at(-1)!.key);
      }
    },
  };
}

function toFence(environmentId: string, values: readonly unknown[]): StoredFence {
  const [key, cutoff, erasure, fenced] = values.map(String) as [string, string, string, string];
  return {
    environmentId,
    key: Buffer.from(key, 'hex'),
    cutoffMs: Number(cutoff),
    erasureId: Buffer.from(erasure.replaceAll('-', ''), 'hex'),
    fencedAtMs: Number(fenced),
    part: READ_WHOLE,
  };
}

/** The greatest key below a key, in hexadecimal digits. */
function before(key: Buffer): string {
  const below = BigInt(`0x${key.toString('hex')}`) - 1n;
  return below.toString(16).padStart(2 * key.length, '0');
}
