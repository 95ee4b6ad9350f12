/** Work that runs only while this process leads. */
import type { Closable } from '@playline/runtime';

export interface LeaderTask extends Closable {
  /** Starts the work unless it is already running. */
  lead(): void;
  /** Stops the work and resolves when it has stopped. */
  stopLeading(): Promise<void>;
}

/** Runs work sequentially, after any unfinished work from the last time that this process led. */
export type RunSequentially = (work: () => Promise<void>) => void;

/** @param begin called when this process starts to lead; its signal is aborted when the process stops leading */
export function openLeaderTask(begin: (signal: AbortSignal, run: RunSequentially) => void): LeaderTask {
  let stop: AbortController | null = null;
  let running = Promise.resolve();
  const run: RunSequentially = (work) => {
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
