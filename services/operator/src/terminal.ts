import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type { Terminal } from './command.ts';

/**
 * Control characters except tabs, and characters that reorder or hide text. Names and revert messages are supplied by
 * clients and contracts, and could otherwise clear the screen or forge lines.
 */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern replaces control characters
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Escapes unprintable characters, such as `\u001b`. JSON stays valid, and its values do not change. */
export function escapeControls(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** Creates the terminal that prints all output. */
export function createTerminal({ stdin, stdout, stderr }: Streams): Terminal {
  // A closed pipe must not crash the process. Commands that depend on their output handle failed writes themselves.
  for (const output of [stdout, stderr]) output.on('error', () => {});
  const print = (output: Writable) => (line: string) => void output.write(`${escapeControls(line)}\n`);
  const prompt = async (text: string): Promise<string> => {
    const lines = createInterface({ input: stdin, output: stderr });
    return lines.question(escapeControls(text)).finally(() => lines.close());
  };
  return {
    result: print(stdout),
    progress: print(stderr),
    text: (text) => printLines(print(stdout), text),
    isInteractive: stderr.isTTY === true,
    ...(stdin.isTTY === true ? { prompt } : {}),
  };
}

/** Prints trusted text, such as help, line by line. */
export function printLines(print: Terminal['result'], text: string): void {
  for (const line of text.split('\n')) print(line);
}

/** Formats a table with aligned columns. @param headers column headers */
export function toTable(headers: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [headers, ...rows];
  const widths = headers.map((_, column) => lines.reduce((most, cells) => Math.max(most, cells[column]!.length), 0));
  return lines.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

const QUIET_PROGRESS_MS = 5_000;

/** Limits progress to one line per five seconds, unless the terminal is interactive. */
export function createProgress(terminal: Terminal): (line: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return (line) => {
    if (!terminal.isInteractive && performance.now() - shownAt < QUIET_PROGRESS_MS) return;
    shownAt = performance.now();
    terminal.progress(line);
  };
}
