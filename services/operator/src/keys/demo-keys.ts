/** Keeps the demo keys in the files of a local stack up to date. */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyEnvironment, KeyKind } from '@playline/access-keys';
import { readStack, type Stack } from '../addresses.ts';

/** The folder of the stack, and the Redis that was changed. */
export interface DemoKeysTarget {
  readonly folder: string;
  readonly redisUrl: string;
}

export interface ChangedKey {
  readonly project: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** '' without a live key. */
  readonly key: string;
}

type DemoKeys = NonNullable<Stack['keys']>;

const DEMO = 'demo';
/** A running supervisor reads a changed `keys.json` within two seconds. */
const SUPERVISOR_MAX_MS = 3_000;
/** Writing takes a millisecond: an older lock belongs to a dead command. */
const LOCK_STALE_MS = 2_000;
const POLL_MS = 20;

/**
 * Writes a changed key of the demo project to `keys.json`, unless the stack uses another Redis. The supervisor copies it to
 * `stack.json`, of which it is the only writer; without a supervisor the file is written here.
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

/** Concurrent commands must not lose each other's key. */
async function whileLocked(path: string, write: () => void): Promise<void> {
  // A monotonic clock, since the time of a file is wall-clock time.
  let seen = { mark: '', sinceMs: 0 };
  while (!takeLock(path)) {
    const mark = markOf(path);
    if (mark !== seen.mark) seen = { mark, sinceMs: performance.now() };
    else if (performance.now() - seen.sinceMs > LOCK_STALE_MS) rmSync(path, { force: true });
    await delay(POLL_MS);
  }
  try {
    write();
  } finally {
    rmSync(path, { force: true });
  }
}

function takeLock(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** Distinguishes a lock from a later one with the same name. */
function markOf(path: string): string {
  const lock = statSync(path, { throwIfNoEntry: false });
  return lock === undefined ? '' : `${lock.ino} ${lock.mtimeMs}`;
}

/** Replaces a file with secrets atomically. */
function replaceFile(path: string, value: object): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

function readJson(path: string): object | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as object;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
