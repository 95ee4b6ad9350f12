import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Encoding } from './traffic.ts';

/** Encodes a body at the cheapest level: clients of games save CPU, not bytes. */
export function encodeBody(body: string, encoding: Encoding): Buffer {
  const bytes = Buffer.from(body);
  if (encoding === 'gzip') return gzipSync(bytes, { level: 1 });
  if (encoding === 'deflate') return deflateSync(bytes, { level: 1 });
  if (encoding === 'br') return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  return encoding === 'zstd' ? zstdCompressSync(bytes) : bytes;
}
