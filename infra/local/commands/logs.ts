import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { tailOf } from '../logs.ts';
import { logFileOf, type StackPaths } from '../paths.ts';

/** Short enough to follow a log, long enough to cost nothing. */
const FOLLOW_POLL_MS = 300;

function logNames(places: StackPaths): string[] {
  try {
    return readdirSync(join(places.state, 'logs'))
      .filter((file) => file.endsWith('.log'))
      .map((file) => file.slice(0, -'.log'.length));
  } catch {
    return [];
  }
}

/**
 * Reads a file from an offset on. Starts at the beginning when the file was replaced by a shorter one.
 * @returns the text, and the offset after it
 */
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

/** `npm run logs [service]`: prints the last lines. At a terminal it follows the log until Ctrl-C. */
export async function logs(places: StackPaths, wanted: readonly string[]): Promise<number> {
  const there = logNames(places);
  const unknown = wanted.filter((name) => !there.includes(name));
  if (there.length === 0 || unknown.length > 0) {
    console.error(
      unknown.length > 0 ? `no log named ${unknown.join(', ')}; there are: ${there.join(', ')}` : 'no logs yet',
    );
    return unknown.length > 0 ? 2 : 1;
  }
  const names = wanted.length > 0 ? wanted : there;
  const show = (name: string, text: string) => {
    if (text === '') return;
    const prefix = names.length > 1 ? `${name.padEnd(16)} ` : '';
    console.log(text.trimEnd().replace(/^/gm, prefix));
  };
  const offsets = new Map<string, number>();
  for (const name of names) {
    show(name, tailOf(logFileOf(places, name)));
    offsets.set(name, readFrom(logFileOf(places, name), 0).offset);
  }
  while (process.stdout.isTTY) {
    await delay(FOLLOW_POLL_MS);
    for (const name of names) {
      const { text, offset } = readFrom(logFileOf(places, name), offsets.get(name) ?? 0);
      offsets.set(name, offset);
      show(name, text);
    }
  }
  return 0;
}
