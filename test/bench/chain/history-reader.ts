import { setTimeout as delay } from 'node:timers/promises';
import type { Server } from '../gateway-servers.ts';

/** Interval of polls, which is the precision of every measured moment. */
const LOOK_EVERY_MS = 20;
const PAGE_SIZE = 200;

interface HistoryPage {
  readonly result: readonly { readonly blockchain_metadata: { readonly block_number: string } }[];
  readonly page: { readonly next_cursor: string };
}

/** Follows the history of a chain as a replica does. */
export interface HistoryReader {
  /**
   * The time (`performance.now`) at which all activities of a block were visible, by block. A block without an entry is
   * not visible yet.
   */
  readonly seenAtMs: ReadonlyMap<number, number>;
  close(): Promise<void>;
}

/** Begins to follow. @param logsABlock number of activities in each block */
export function openHistoryReader(api: Server, chain: string, logsABlock: number): HistoryReader {
  const [counts, seenAtMs] = [new Map<number, number>(), new Map<number, number>()];
  const ended = new AbortController();
  const readPage = async (cursor: string | null): Promise<HistoryPage> => {
    const query = new URLSearchParams({
      page_size: String(PAGE_SIZE),
      ...(cursor !== null && { page_cursor: cursor }),
    });
    const answer = await fetch(`http://127.0.0.1:${api.port}/v1/chains/${chain}/activity-history?${query}`);
    if (!answer.ok) throw new Error(`a page was answered with ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as HistoryPage;
  };
  const run = async () => {
    let cursor: string | null = null;
    while (!ended.signal.aborted) {
      const { result, page } = await readPage(cursor);
      cursor = page.next_cursor;
      for (const { blockchain_metadata: metadata } of result) {
        const block = Number(metadata.block_number);
        const count = (counts.get(block) ?? 0) + 1;
        counts.set(block, count);
        if (count === logsABlock) seenAtMs.set(block, performance.now());
      }
      if (result.length === 0) await delay(LOOK_EVERY_MS);
    }
  };
  const running = run();
  // `close` reports the error. Until then it must not count as an unhandled rejection.
  running.catch(() => {});
  return {
    seenAtMs,
    close: () => {
      ended.abort();
      return running;
    },
  };
}
