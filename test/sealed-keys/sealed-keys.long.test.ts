/** Searches everything that a real stack stores for the private key of a signable key. */
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { SignableKeyRecord } from '@playline/access-keys';
import { createSigner, parseSignerKeys } from '@playline/access-keys/signer';
import { bareEnvironment } from '@playline/testkit';
import { Redis } from 'ioredis';
import { compactDecrypt } from 'jose';
import { recoverMessageAddress, toHex } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findInFiles } from '../erasure/traces/files.ts';
import { findInBytes, locationsIn, type Needle } from '../erasure/traces/needle.ts';
import { findInRedis } from '../erasure/traces/redis.ts';
import { type JourneyStack, startJourneyStack } from '../journeys/stack.ts';

const run = promisify(execFile);
const pathOf = (name: string) => new URL(name, import.meta.url).pathname;

let stack: JourneyStack;
let redis: Redis;
let memory: string;
let record: SignableKeyRecord;
let key: Buffer;

beforeAll(async () => {
  stack = await startJourneyStack({ services: ['gateway', 'portal'] });
  redis = new Redis(stack.file().redis);
  memory = mkdtempSync(join(tmpdir(), 'memory-'));
  const [made] = await operate('create', '--environment', 'production', '--name', 'Minter');
  const kept = await redis.hget('access:signable-keys', made.address);
  record = JSON.parse((kept ?? '').replace(/^\d+ \d+ \d+ /, ''));
  key = await openAsSigner(record.sealed);
}, 180_000);
afterAll(async () => {
  redis?.disconnect();
  rmSync(memory, { recursive: true, force: true });
  await stack?.close();
}, 60_000);

/** Runs a key command as a process that dumps its memory before it prints the new key. */
async function operate(word: string, ...text: string[]) {
  const { kafka, registry, redis: redisUrl, signerPublicKey } = stack.file();
  const env = {
    ...bareEnvironment(),
    KAFKA_BROKERS: kafka.join(),
    SCHEMA_REGISTRY_URL: registry,
    REDIS_URL: redisUrl,
    SIGNER_PUBLIC_KEY: signerPublicKey ?? '',
    WRITE_MEMORY_TO: memory,
  };
  const main = pathOf('../../services/operator/src/main.ts');
  const args = ['--import', pathOf('write-memory.ts'), main, 'keys', word, '--kind', 'signable', ...text, '--json'];
  const { stdout } = await run(process.execPath, args, { env, cwd: memory });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const signerKeys = (): string => JSON.parse(readFileSync(join(stack.folder, 'secrets.json'), 'utf8')).signerKeys;

/**
 * Opens a sealed key as the signer does. Only the signer can, and this test has read its private key from the stack's
 * secrets.
 */
async function openAsSigner(sealed: string): Promise<Buffer> {
  const [jwk] = JSON.parse(Buffer.from(signerKeys(), 'base64url').toString());
  const { plaintext } = await compactDecrypt(sealed, createPrivateKey({ key: jwk, format: 'jwk' }));
  return Buffer.from(plaintext);
}

/** A private key in every form in which a program may have written it. */
function needlesOf(bytes: Buffer): Needle[] {
  const hex = bytes.toString('hex');
  const forms: [string, Buffer][] = [
    ['bytes', bytes],
    ['bytes as a big integer', Buffer.from(bytes).reverse()],
    ['hexadecimal', Buffer.from(hex)],
    ['capital hexadecimal', Buffer.from(hex.toUpperCase())],
    ['hexadecimal of two bytes a character', Buffer.from(hex, 'utf16le')],
    ['decimal', Buffer.from(BigInt(`0x${hex}`).toString())],
  ];
  // Inside a longer text, base64 can begin at three different bit positions.
  for (const skipped of [0, 1, 2]) {
    const whole = bytes.subarray(skipped, skipped + 30 - (skipped === 0 ? 0 : 3));
    forms.push([`base64 from ${skipped}`, Buffer.from(whole.toString('base64'))]);
    forms.push([`base64url from ${skipped}`, Buffer.from(whole.toString('base64url'))]);
  }
  return forms.map(([name, form]) => ({ name, kind: 'key', bytes: form }));
}

const named = (name: string, bytes: Buffer): Needle => ({ name, kind: 'text', bytes });

it('the sealed text contains the private key, and signs for its address', async () => {
  expect(privateKeyToAddress(toHex(key)).toLowerCase()).toBe(record.address);
  const signer = createSigner({ privateKeys: parseSignerKeys(signerKeys()) });
  const message = 'a message';
  const signature = (await signer.signMessage(record, message)) as `0x${string}`;
  expect((await recoverMessageAddress({ message, signature })).toLowerCase()).toBe(record.address);
});

it('the private key is in no file of the stack: log, append-only file, tables, logs of processes, records', () => {
  const locationOf = (path: string) => path.split('/').slice(0, 2).join('/');
  const known = [named('sealed', Buffer.from(record.sealed)), named('table', Buffer.from('events_exact'))];
  const found = findInFiles(stack.folder, [...known, ...needlesOf(key)], { locationOf, decompress: true });
  // Proves that the search works: the log and the append-only file have the record.
  const locationsOf = (needle: string) => locationsIn(found.filter((trace) => trace.needle === needle));
  expect(locationsOf('sealed')).toEqual(['data/kafka', 'data/redis']);
  expect(locationsOf('table')).toContain('data/clickhouse');
  expect(found.filter(({ kind }) => kind === 'key')).toEqual([]);
});

it('the private key is in no key of Redis', async () => {
  expect(await findInRedis(redis, [named('address', Buffer.from(record.address))])).not.toEqual([]);
  expect(await findInRedis(redis, needlesOf(key))).toEqual([]);
});

it('the private key was never in the memory of the process that requested it', () => {
  const found = (needles: Needle[]) => findInFiles(memory, needles);
  const known = [named('address', Buffer.from(record.address))];
  expect(locationsIn(found(known))).toEqual(['heap.heapsnapshot', 'memory']);
  expect(found(needlesOf(key))).toEqual([]);
});

it('the search finds a private key in each of its forms', () => {
  for (const { bytes } of needlesOf(key)) {
    const locations = findInBytes(
      'somewhere',
      Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(3)]),
      needlesOf(key),
    );
    expect(locations).not.toEqual([]);
  }
  for (const before of [0, 1, 2]) {
    const longer = Buffer.concat([Buffer.alloc(before, 1), key, Buffer.alloc(5)]);
    for (const form of ['base64', 'base64url'] as const)
      expect(findInBytes('somewhere', Buffer.from(longer.toString(form)), needlesOf(key))).not.toEqual([]);
  }
});
