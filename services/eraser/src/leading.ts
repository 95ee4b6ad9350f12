import type { Closable } from '@playline/runtime';

/** Work that this process does only while it leads. */
export interface Leading extends Closable {
  /** Tells that this process leads from now on; does nothing if it leads already. */
  lead(): void;
  /** Tells that another process may lead from now on. Resolves when the running work has stopped. */
  follow(): Promise<void>;
}

/** Runs works one after the other. They also wait for unfinished work of an earlier time as the leader. */
export type RunInTurn = (work: () => Promise<void>) => void;

/**
 * Opens the work of a leader; nothing runs before it leads. Closing does the same as `follow`.
 * @param begin called whenever this process begins to lead; the signal is aborted when it stops leading
 */
export function openLeading(begin: (signal: AbortSignal, run: RunInTurn) => void): Leading {
  let stop: AbortController | null = null;
  let running = Promise.resolve();
  const run: RunInTurn = (work) => {
    running = running.then(work);
  };
  const follow = async () => {
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
    follow,
    close: follow,
  };
}
