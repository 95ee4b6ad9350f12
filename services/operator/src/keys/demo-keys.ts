/** Updates the demo keys in the files of a local stack. */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyEnvironment, KeyKind } from '@playline/access-keys';
import { readStack, type Stack } from '../addresses.ts';

/** The stack folder, and the Redis in which a key was changed. */
export interface DemoKeysTarget {
  readonly folder: string;
  readonly redisUrl: string;
}

export interface ChangedKey {
  readonly project: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** The live key, or '' if there is none. */
  readonly key: string;
}

type DemoKeys = NonNullable<Stack['keys']>;

const DEMO = 'demo';
/** A running supervisor reads a changed `keys.json` within two seconds. */
const SUPERVISOR_MAX_MS = 3_000;
/** A write takes about a millisecond, so an older lock belongs to a dead process. */
const LOCK_STALE_MS = 2_000;
const POLL_MS = 20;

/**
 * Writes a changed key of the demo project to `keys.json`, unless the stack uses another Redis. A running supervisor
 * copies the key to `stack.json`; without a supervisor, this function also updates `stack.json`.
 */
export async function publishDemoKey({ folder, redisUrl }: DemoKeysTarget, changed: ChangedKey): Promise<void> {
  const stack = readStack(folder);
  if (changed.project !== DEMO || stack.redis !== redisUrl || stack.keys === undefined) return;
  const path = join(folder, '.playline', 'keys.json');
  await whileLocked(`${path}.lock`, () => {
    const keys = (readJson(path) ?? stack.keys) as DemoKeys;
    const pair = { ...keys[changed.environment], [changed.kind]: changed.key };
    replaceFile(path, { ...keys, [changed.environment]: pair });
  });
  const isPublished = () => {
    const { keys } = readStack(folder);
    return keys === undefined || keys[changed.environment][changed.kind] === changed.key;
  };
  const endAt = performance.now() + SUPERVISOR_MAX_MS;
  while (!isPublished() && performance.now() < endAt) await delay(POLL_MS);
  if (isPublished()) return;
  const stackPath = join(folder, '.playline', 'stack.json');
  const current = readJson(stackPath);
  if (current !== null) replaceFile(stackPath, { ...current, keys: readJson(path) });
}

/** Runs `write` while holding the lock file, so that concurrent commands do not overwrite each other's keys. */
async function whileLocked(path: string, write: () => void): Promise<void> {
  // Uses a monotonic clock, because file times are wall-clock times.
  let seen = { lockId: '', sinceMs: 0 };
  while (!acquireLock(path)) {
    const lockId = lockIdOf(path);
    if (lockId !== seen.lockId) seen = { lockId, sinceMs: performance.now() };
    else if (performance.now() - seen.sinceMs > LOCK_STALE_MS) rmSync(path, { force: true });
    await delay(POLL_MS);
  }
  try {
    write();
  } finally {
    rmSync(path, { force: true });
  }
}

function acquireLock(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** Distinguishes a lock file from a later lock file at the same path. */
function lockIdOf(path: string): string {
  const lock = statSync(path, { throwIfNoEntry: false });
  return lock === undefined ? '' : `${lock.ino} ${lock.mtimeMs}`;
}

/** Atomically replaces a file that contains secrets. */
function replaceFile(path: string, value: object): void {
  const temporaryPath = `${path}.${process.pid}.new`;
  writeFileSync(temporaryPath, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporaryPath, path);
}

function readJson(path: string): object | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as object;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
