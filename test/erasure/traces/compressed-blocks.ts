import { zstdDecompressSync } from 'node:zlib';

/** A block in a ClickHouse file consists of a checksum, the compression method, sizes, and the data. */
const CHECKSUM_BYTES = 16;
const HEADER_BYTES = 9;
const METHODS = { none: 0x02, lz4: 0x82, zstd: 0x90 } as const;

export interface Decompressed {
  /** Contents of all blocks, concatenated because a value may span two blocks. */
  readonly bytes: Buffer;
  /** Number of blocks that use a numeric codec, which is never used for strings or keys. */
  readonly unread: number;
}

/** Decompresses a ClickHouse file. @returns null if the file is not a sequence of blocks */
export function decompressBlocks(file: Buffer): Decompressed | null {
  const blocks: Buffer[] = [];
  let unread = 0;
  for (let at = 0; at < file.length; ) {
    const header = at + CHECKSUM_BYTES;
    if (header + HEADER_BYTES > file.length) return null;
    const [method, size, rawSize] = [file[header]!, file.readUInt32LE(header + 1), file.readUInt32LE(header + 5)];
    if (size < HEADER_BYTES || header + size > file.length) return null;
    const body = file.subarray(header + HEADER_BYTES, header + size);
    if (method === METHODS.none) blocks.push(body);
    else if (method === METHODS.lz4) blocks.push(decompressLz4(body, rawSize));
    else if (method === METHODS.zstd) blocks.push(zstdDecompressSync(body));
    else unread++;
    at = header + size;
  }
  return blocks.length === 0 ? null : { bytes: Buffer.concat(blocks), unread };
}

const LENGTH_MASK = 15;
const MATCH_MIN = 4;

/** Decodes a raw LZ4 block, which alternates literals and copies of earlier output. */
export function decompressLz4(body: Buffer, rawSize: number): Buffer {
  const raw = Buffer.alloc(rawSize);
  let [from, to] = [0, 0];
  const readLength = (first: number) => {
    let length = first;
    if (first === LENGTH_MASK)
      for (let more = 255; more === 255; ) {
        more = body[from++]!;
        length += more;
      }
    return length;
  };
  while (from < body.length) {
    const token = body[from++]!;
    const literals = readLength(token >> 4);
    body.copy(raw, to, from, from + literals);
    from += literals;
    to += literals;
    if (from >= body.length) break;
    const distance = body.readUInt16LE(from);
    from += 2;
    // Copies byte by byte because source and destination may overlap.
    for (let left = readLength(token & LENGTH_MASK) + MATCH_MIN; left > 0; left--, to++) raw[to] = raw[to - distance]!;
  }
  return raw;
}
