import type { Terminal } from './command.ts';

/** Not a person watching: a line now and then is enough for a log. */
const QUIET_PROGRESS_MS = 5_000;

/** Passes on a line at once to a person, and at most one each five seconds to a log. */
export function createProgress(terminal: Terminal): (line: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return (line) => {
    if (!terminal.isInteractive && performance.now() - shownAt < QUIET_PROGRESS_MS) return;
    shownAt = performance.now();
    terminal.progress(line);
  };
}
