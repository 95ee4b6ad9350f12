import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyEnvironment, KeyKind } from '@playline/access-keys';
import { readStack, type Stack } from '../stack-file.ts';

/** The stack whose files may need the changed key, and the Redis that was changed. */
export interface DemoKeysTarget {
  /** Folder whose `.playline` contains the stack's files. */
  readonly folder: string;
  readonly redisUrl: string;
}

export interface ChangedKey {
  readonly project: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** The text of the live key; '' when there is none. */
  readonly key: string;
}

type DemoKeys = NonNullable<Stack['keys']>;

/** The project whose keys are shown in a stack's files. */
const DEMO = 'demo';
/** The supervisor of a stack reads a changed `keys.json` within two seconds; without a reaction for this long, none runs. */
const SUPERVISOR_MAX_MS = 3_000;
/** Writing a file takes a millisecond; a lock that does not change for this long belongs to a dead command. */
const LOCK_STALE_MS = 2_000;
const POLL_MS = 20;

/**
 * Writes a changed key of the demo project to `keys.json`, which the next start reads, and to `stack.json`. Does
 * nothing when the stack in that folder uses another Redis.
 *
 * `stack.json` has one writer, the stack's supervisor, since it also contains process ids: it copies the keys from
 * `keys.json`. Only without a supervisor is the file rewritten here.
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
  if (!isPublished()) rewriteStack(join(folder, '.playline', 'stack.json'), path);
}

/** Used when no supervisor runs. */
function rewriteStack(stackPath: string, keysPath: string): void {
  const stack = readJson(stackPath);
  if (stack !== null) replaceFile(stackPath, { ...stack, keys: readJson(keysPath) });
}

/** Two commands at once must not lose each other's key. */
async function whileLocked(path: string, write: () => void): Promise<void> {
  // Measured from now by a monotonic clock: the time of a file is wall-clock time, which may be changed.
  let seen = { mark: '', sinceMs: 0 };
  while (!isLocked(path)) {
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

/** True when the lock is ours now. */
function isLocked(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** Distinguishes a lock from the next one of the same name. */
function markOf(path: string): string {
  const lock = statSync(path, { throwIfNoEntry: false });
  return lock === undefined ? '' : `${lock.ino} ${lock.mtimeMs}`;
}

/** Replaces the file atomically, readable only by its owner, since it contains secrets. */
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
