/** Work that runs only while this process leads. */
import type { Closable } from '@playline/runtime';

export interface Leading extends Closable {
  /** Starts the work, if it is not running. */
  lead(): void;
  /** Stops the work. Resolves when it has stopped. */
  stopLeading(): Promise<void>;
}

/** Runs work sequentially, after any unfinished work of an earlier leadership. */
export type RunInTurn = (work: () => Promise<void>) => void;

/** @param begin called when this process starts to lead; the signal is aborted when it stops */
export function openLeading(begin: (signal: AbortSignal, run: RunInTurn) => void): Leading {
  let stop: AbortController | null = null;
  let running = Promise.resolve();
  const run: RunInTurn = (work) => {
    running = running.then(work);
  };
  const stopLeading = async () => {
    stop?.abort();
    stop = null;
    await running;
  };
  return {
    lead() {
      if (stop !== null) return;
      stop = new AbortController();
      begin(stop.signal, run);
    },
    stopLeading,
    close: stopLeading,
  };
}
