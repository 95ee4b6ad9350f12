import type { Terminal } from './command.ts';

/** In a log, without a person watching, a line now and then is enough. */
const QUIET_PROGRESS_MS = 5_000;

/** Passes on each line to a person, and at most one every five seconds to a log. */
export function createProgress(terminal: Terminal): (line: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return (line) => {
    if (!terminal.isInteractive && performance.now() - shownAt < QUIET_PROGRESS_MS) return;
    shownAt = performance.now();
    terminal.progress(line);
  };
}
