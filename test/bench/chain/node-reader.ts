import { setTimeout as delay } from 'node:timers/promises';
import { callRpc } from '@playline/infra/chain';
import type { Replayer } from './open-replayer.ts';

interface NodeBlock {
  readonly number: string;
  readonly hash: string;
}

/** Floor of the history: polls the node as often as the indexer does, and reads the logs of new final blocks. */
export interface NodeReader {
  /** The time (`performance.now`) at which the logs of a block were read, by block. */
  readonly seenAtMs: ReadonlyMap<number, number>;
  close(): Promise<void>;
}

/** @param pollMs the indexer's interval of polls */
export function openNodeReader({ url }: Replayer, pollMs: number): NodeReader {
  const seenAtMs = new Map<number, number>();
  const ended = new AbortController();
  let next: number | null = null;
  const look = async () => {
    const final = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', ['finalized', false]);
    for (let number = next ?? Number(final.number); number <= Number(final.number); number++) {
      const block = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, false]);
      await callRpc(url, 'eth_getLogs', [{ blockHash: block.hash }]);
      seenAtMs.set(number, performance.now());
      next = number + 1;
    }
  };
  const run = async () => {
    while (!ended.signal.aborted) {
      await look();
      await delay(pollMs, undefined, { signal: ended.signal }).catch(() => {});
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
