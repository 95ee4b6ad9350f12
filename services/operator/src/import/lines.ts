import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { UsageError } from '../command.ts';

/** A line of an import; for invalid JSON `value` is undefined and `fault` says why. */
export interface Line {
  /** From 1. */
  readonly number: number;
  readonly value: unknown;
  readonly fault: string | null;
}

/** Lines that can be read repeatedly from the first one on. */
export interface LineSource {
  read(): AsyncGenerator<Line>;
  close(): Promise<void>;
}

/** The brokers, with a limit of 1 MiB, would refuse the record of a longer line. */
export const LINE_BYTES_MAX: number = 512 * 1024;
const NEWLINE = 0x0a;

/** Source of lines that are not in a file. */
export interface LineInput {
  readonly stdin: Readable;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

/**
 * Opens a file. What can be read only once, such as standard input or a pipe, is kept in a temporary file until it is
 * closed.
 * @param path absolute; null: `stdin`
 * @throws UsageError for a missing or compressed file; Error when interrupted before all is read
 */
export async function openLineSource(path: string | null, { stdin, stop }: LineInput): Promise<LineSource> {
  const found = path === null ? null : await stat(path).catch(() => null);
  if (path !== null && found === null) throw new UsageError(`there is no file ${path}`);
  if (found?.isDirectory()) throw new UsageError(`${path} is a folder`);
  if (path !== null && found?.isFile()) {
    await assertPlain(path);
    return { read: () => readLines(createReadStream(path)), close: async () => {} };
  }
  const folder = await mkdtemp(join(tmpdir(), 'import-'));
  const kept = join(folder, 'lines');
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const given = path === null ? stdin : createReadStream(path);
    await pipeline(given, createWriteStream(kept, { mode: 0o600 }), { signal: stop });
    await assertPlain(kept);
  } catch (fault) {
    await close();
    if (stop.aborted) throw new Error('ended before all lines were there: nothing was published', { cause: fault });
    throw fault;
  }
  return { read: () => readLines(createReadStream(kept)), close };
}

/** Magic bytes of compressed files, and the command that decompresses each. */
const PACKED = [
  { name: 'gzip', magic: Buffer.from('1f8b', 'hex'), command: 'zcat' },
  { name: 'zstd', magic: Buffer.from('28b52ffd', 'hex'), command: 'zstdcat' },
];

/** Refuses a compressed file, whose every line would fail with an unhelpful reason. @throws UsageError */
async function assertPlain(path: string): Promise<void> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    const packed = PACKED.find(({ magic }) => buffer.subarray(0, bytesRead).indexOf(magic) === 0);
    if (packed === undefined) return;
    throw new UsageError(
      `the lines are packed by ${packed.name}: unpack them on their way, ${packed.command} FILE | … -`,
    );
  } finally {
    await file.close();
  }
}

/** Parses lines of UTF-8 with JSON; blank ones are counted but skipped. @param chunks bytes, cut anywhere */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    bytes += part.length;
    // A line that is too long is not kept: a file without line ends may be larger than the memory.
    if (bytes <= LINE_BYTES_MAX) parts.push(part);
  };
  const take = (): Line | null => {
    number++;
    const line = bytes > LINE_BYTES_MAX ? tooLong(number) : parseLine(number, Buffer.concat(parts));
    [parts, bytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at));
      from = at + 1;
      const line = take();
      if (line !== null) yield line;
    }
    add(chunk.subarray(from));
  }
  const last = take();
  if (last !== null) yield last;
}

const tooLong = (number: number): Line => ({
  number,
  value: undefined,
  fault: `is longer than ${LINE_BYTES_MAX} bytes`,
});

const decoder = new TextDecoder('utf-8', { fatal: true });

function parseLine(number: number, bytes: Buffer): Line | null {
  try {
    const text = decoder.decode(bytes).trim();
    return text === '' ? null : { number, value: JSON.parse(text), fault: null };
  } catch (fault) {
    return { number, value: undefined, fault: fault instanceof SyntaxError ? 'is no JSON' : 'is no UTF-8' };
  }
}
