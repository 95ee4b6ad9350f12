/** Searches all data in a real stack for a signable key's private key. */
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SignableKeyRecord } from '@playline/access-keys';
import type { StackFile } from '@playline/infra/local';
import { Redis } from 'ioredis';
import { compactDecrypt } from 'jose';
import { findInFiles } from '../erasure/traces/files.ts';
import { locationsIn, type Needle, textNeedle } from '../erasure/traces/needle.ts';
import { findInRedis } from '../erasure/traces/redis.ts';
import { OPERATOR, readRecords, runProgram } from '../journeys/stack.ts';

const WRITE_MEMORY = new URL('write-memory.ts', import.meta.url).pathname;

export interface CreatedKey {
  readonly record: SignableKeyRecord;
  readonly key: Buffer;
  readonly memory: string;
}

/** Creates a signable key with a process that dumps its memory before it prints the key. */
export async function createKeyAndDumpMemory(file: StackFile, signerKeys: string) {
  const memory = mkdtempSync(join(tmpdir(), 'memory-'));
  const env = {
    KAFKA_BROKERS: file.kafka.join(),
    SCHEMA_REGISTRY_URL: file.registry,
    REDIS_URL: file.redis,
    SIGNER_PUBLIC_KEY: file.signerPublicKey ?? '',
    WRITE_MEMORY_TO: memory,
    NODE_OPTIONS: `--import=${WRITE_MEMORY}`,
  };
  const args = ['keys', 'create', '--kind', 'signable', '--environment', 'production', '--name', 'Minter', '--json'];
  const { code, out, err } = await runProgram(OPERATOR, args, { cwd: memory, env });
  if (code !== 0) throw new Error(err);
  const { address } = JSON.parse(out) as { address: string };
  const record = (await readRecords<SignableKeyRecord>(file.redis, 'signable-keys')).find(
    (each) => each.address === address,
  )!;
  const close = () => rmSync(memory, { recursive: true, force: true });
  return { record, key: await unsealAsSigner(record.sealed, signerKeys), memory, close };
}

async function unsealAsSigner(sealed: string, signerKeys: string): Promise<Buffer> {
  const [jwk] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString());
  return Buffer.from((await compactDecrypt(sealed, createPrivateKey({ key: jwk, format: 'jwk' }))).plaintext);
}

export function toNeedles(bytes: Buffer): Needle[] {
  const hex = bytes.toString('hex');
  const forms: [string, Buffer][] = [
    ['bytes', bytes],
    ['bytes in reverse order', Buffer.from(bytes).reverse()],
    ['hexadecimal', Buffer.from(hex)],
    ['upper-case hexadecimal', Buffer.from(hex.toUpperCase())],
    ['hexadecimal in UTF-16', Buffer.from(hex, 'utf16le')],
    ['decimal', Buffer.from(BigInt(`0x${hex}`).toString())],
  ];
  // Within longer base64 text, the key has one of three alignments.
  for (const skipped of [0, 1, 2]) {
    const whole = bytes.subarray(skipped, skipped + 30 - (skipped === 0 ? 0 : 3));
    for (const form of ['base64', 'base64url'] as const)
      forms.push([`${form} from ${skipped}`, Buffer.from(whole.toString(form))]);
  }
  return forms.map(([name, form]) => ({ name, kind: 'key', bytes: form }));
}

export function searchFiles(folder: string, { record, key }: CreatedKey) {
  const locationOf = (path: string) => path.split('/').slice(0, 2).join('/');
  const known = [textNeedle('sealed', record.sealed), textNeedle('table', 'events_exact')];
  const found = findInFiles(folder, [...known, ...toNeedles(key)], { locationOf, decompress: true });
  return {
    keyMatches: found.filter(({ kind }) => kind === 'key'),
    locationsOf: (needle: string) => locationsIn(found.filter((trace) => trace.needle === needle)),
  };
}

export async function searchRedis(url: string, { record, key }: CreatedKey) {
  const redis = new Redis(url);
  try {
    const addressMatches = await findInRedis(redis, [textNeedle('address', record.address)]);
    return { addressMatches, keyMatches: await findInRedis(redis, toNeedles(key)) };
  } finally {
    redis.disconnect();
  }
}

export function searchMemory({ record, key, memory }: CreatedKey) {
  const addressMatches = locationsIn(findInFiles(memory, [textNeedle('address', record.address)]));
  return { addressMatches, keyMatches: findInFiles(memory, toNeedles(key)) };
}
