import { closeSync, createReadStream, existsSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT } from '../command-table.mjs';
import { type LogSearch, parseFields, parseLogSearch } from '../log-filter.ts';
import { tailOf } from '../logs.ts';
import { parseNodeName } from '../node-names.ts';
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

/** Returns true for the requested process, or for any process of the requested kind: `kafka` also selects `kafka-2`. */
const isLogOf = (log: string, requested: string): boolean => log === requested || parseNodeName(log).kind === requested;

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

/** Yields the lines of a log, including the renamed older part. */
async function* readLines(path: string): AsyncGenerator<string> {
  for (const part of [`${path}.1`, path]) if (existsSync(part)) yield* createInterface(createReadStream(part));
}

interface FoundLine {
  readonly name: string;
  readonly line: string;
  /** Empty for lines without a time, which precede all others. */
  readonly at: string;
}

/** More lines than a terminal scrolls back. Only the latest lines are shown. */
const FOUND_MAX = 10_000;

/** Returns the matching lines of all logs in the order of their times. */
export async function findLines(paths: StackPaths, names: readonly string[], matches: (line: string) => boolean) {
  const found: FoundLine[] = [];
  for (const name of names) {
    for await (const line of readLines(logFileOf(paths, name)))
      if (matches(line)) found.push({ name, line, at: parseFields(line)?.at ?? '' });
  }
  return found.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at))).slice(-FOUND_MAX);
}

/** Prints the last log lines, or the lines that the options select. In a terminal, follows the logs until Ctrl-C. */
export async function logs(paths: StackPaths, args: readonly string[]): Promise<number> {
  let parsed: LogSearch;
  try {
    parsed = parseLogSearch(args, Date.now());
  } catch (error) {
    console.error(`logs: ${(error as Error).message} (see npm run logs -- --help)`);
    return EXIT.usage;
  }
  const { names: requested, matches } = parsed;
  const existing = logNames(paths);
  const unknown = requested.filter((name) => existing.every((log) => !isLogOf(log, name)));
  if (unknown.length > 0) {
    console.error(`unknown log: ${unknown.join(', ')}. Available logs: ${existing.join(', ')}`);
    return EXIT.usage;
  }
  if (existing.length === 0) {
    console.error('no logs yet; start the stack with `npm start`');
    return EXIT.failed;
  }
  const names =
    requested.length === 0 ? existing : existing.filter((log) => requested.some((name) => isLogOf(log, name)));
  const show = (name: string, text: string) => {
    if (text === '') return;
    const prefix = names.length > 1 ? `${name.padEnd(18)} ` : '';
    console.log(text.trimEnd().replace(/^/gm, prefix));
  };
  const offsets = new Map(names.map((name) => [name, readFrom(logFileOf(paths, name), 0).offset]));
  if (matches !== null) for (const { name, line } of await findLines(paths, names, matches)) show(name, line);
  else for (const name of names) show(name, tailOf(logFileOf(paths, name)));
  while (process.stdout.isTTY) {
    await delay(FOLLOW_POLL_MS);
    for (const name of names) {
      const { text, offset } = readFrom(logFileOf(paths, name), offsets.get(name) ?? 0);
      offsets.set(name, offset);
      show(name, matches === null ? text : text.split('\n').filter(matches).join('\n'));
    }
  }
  return EXIT.ok;
}
