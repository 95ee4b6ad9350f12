import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { tailOf } from '../logs.ts';
import { logFileOf, type StackPaths } from '../paths.ts';

const FOLLOW_POLL_MS = 300;

function logNames(paths: StackPaths): string[] {
  try {
    return readdirSync(join(paths.state, 'logs'))
      .filter((file) => file.endsWith('.log'))
      .map((file) => file.slice(0, -'.log'.length));
  } catch {
    return [];
  }
}

/** Reads a file from an offset, or from the beginning if it was replaced. @returns the text and the next offset */
function readFrom(path: string, offset: number): { text: string; offset: number } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const start = size < offset ? 0 : offset;
    const bytes = Buffer.alloc(size - start);
    readSync(file, bytes, 0, bytes.length, start);
    return { text: bytes.toString('utf8'), offset: size };
  } finally {
    closeSync(file);
  }
}

/** Prints the last log lines. In a terminal, follows the logs until Ctrl-C. */
export async function logs(paths: StackPaths, requested: readonly string[]): Promise<number> {
  const existing = logNames(paths);
  const unknown = requested.filter((name) => !existing.includes(name));
  if (unknown.length > 0) {
    console.error(`unknown log: ${unknown.join(', ')}. Available logs: ${existing.join(', ')}`);
    return 2;
  }
  if (existing.length === 0) {
    console.error('no logs yet; start the stack with `npm start`');
    return 1;
  }
  const names = requested.length > 0 ? requested : existing;
  const show = (name: string, text: string) => {
    if (text === '') return;
    const prefix = names.length > 1 ? `${name.padEnd(16)} ` : '';
    console.log(text.trimEnd().replace(/^/gm, prefix));
  };
  const offsets = new Map<string, number>();
  for (const name of names) {
    show(name, tailOf(logFileOf(paths, name)));
    offsets.set(name, readFrom(logFileOf(paths, name), 0).offset);
  }
  while (process.stdout.isTTY) {
    await delay(FOLLOW_POLL_MS);
    for (const name of names) {
      const { text, offset } = readFrom(logFileOf(paths, name), offsets.get(name) ?? 0);
      offsets.set(name, offset);
      show(name, text);
    }
  }
  return 0;
}
