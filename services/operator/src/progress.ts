import type { Terminal } from './command.ts';

const QUIET_PROGRESS_MS = 5_000;

/** Prints every line for a person, and at most one in five seconds to a log. */
export function createProgress(terminal: Terminal): (line: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return (line) => {
    if (!terminal.isInteractive && performance.now() - shownAt < QUIET_PROGRESS_MS) return;
    shownAt = performance.now();
    terminal.progress(line);
  };
}
