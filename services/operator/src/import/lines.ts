/** Reads the lines of an import from a file or from standard input. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { UsageError } from '../command.ts';

/** A line of the input; invalid lines have a `fault` and no `value`. */
export interface Line {
  /** Line number, starting at 1. */
  readonly number: number;
  readonly value: unknown;
  readonly fault: string | null;
}

/** An input whose lines can be read several times. */
export interface LineSource {
  read(): AsyncGenerator<Line>;
  close(): Promise<void>;
}

/** The brokers limit a record to 1 MiB. */
export const LINE_BYTES_MAX: number = 512 * 1024;
const NEWLINE = 0x0a;

/**
 * Opens a file. A stream is copied to a temporary file, which `close` deletes.
 * @param path absolute path, or null for `stdin`
 * @throws UsageError for a missing or compressed file; Error when interrupted before the end of the input
 */
export async function openLineSource(
  path: string | null,
  { stdin, stop }: { readonly stdin: Readable; readonly stop: AbortSignal },
): Promise<LineSource> {
  const found = path === null ? null : await stat(path).catch(() => null);
  if (path !== null && found === null) throw new UsageError(`file ${path} does not exist`);
  if (found?.isDirectory()) throw new UsageError(`${path} is a folder`);
  if (path !== null && found?.isFile()) {
    await assertUncompressed(path);
    return { read: () => readLines(createReadStream(path)), close: async () => {} };
  }
  const folder = await mkdtemp(join(tmpdir(), 'import-'));
  const copyPath = join(folder, 'lines');
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const input = path === null ? stdin : createReadStream(path);
    await pipeline(input, createWriteStream(copyPath, { mode: 0o600 }), { signal: stop });
    await assertUncompressed(copyPath);
  } catch (fault) {
    await close();
    if (stop.aborted)
      throw new Error('interrupted before all lines were read: no lines were published', { cause: fault });
    throw fault;
  }
  return { read: () => readLines(createReadStream(copyPath)), close };
}

const COMPRESSED_FORMATS = [
  { name: 'gzip', magic: Buffer.from('1f8b', 'hex'), command: 'zcat' },
  { name: 'zstd', magic: Buffer.from('28b52ffd', 'hex'), command: 'zstdcat' },
];

/** @throws UsageError for a compressed file, in which every line would be invalid */
async function assertUncompressed(path: string): Promise<void> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    const format = COMPRESSED_FORMATS.find(({ magic }) => buffer.subarray(0, bytesRead).indexOf(magic) === 0);
    if (format === undefined) return;
    throw new UsageError(
      `the input is compressed with ${format.name}: decompress it with ${format.command} FILE | … -`,
    );
  } finally {
    await file.close();
  }
}

/** Parses JSON Lines in UTF-8. Blank lines are skipped, but counted. @param chunks bytes, split at any position */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    bytes += part.length;
    // A file without line breaks may not fit in memory.
    if (bytes <= LINE_BYTES_MAX) parts.push(part);
  };
  const endLine = (): Line | null => {
    number++;
    const tooLong = { number, value: undefined, fault: `is longer than ${LINE_BYTES_MAX} bytes` };
    const line = bytes > LINE_BYTES_MAX ? tooLong : parseLine(number, Buffer.concat(parts));
    [parts, bytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at));
      from = at + 1;
      const line = endLine();
      if (line !== null) yield line;
    }
    add(chunk.subarray(from));
  }
  const last = endLine();
  if (last !== null) yield last;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function parseLine(number: number, bytes: Buffer): Line | null {
  try {
    const text = decoder.decode(bytes).trim();
    return text === '' ? null : { number, value: JSON.parse(text), fault: null };
  } catch (fault) {
    const format = fault instanceof SyntaxError ? 'JSON' : 'UTF-8';
    return { number, value: undefined, fault: `is not valid ${format}` };
  }
}
