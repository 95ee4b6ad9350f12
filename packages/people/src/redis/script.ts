import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Redis, ReplyError } from 'ioredis';
import { EpochPresentFault, MissingEpochFault } from '../faults.ts';
import { GraphBehindFault } from '../graph.ts';

export type ScriptArgument = string | number | Buffer;

/** Runs one script by its hash, and by its text where the server does not know it yet. */
export type RunScript = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<unknown>;

/** Reads a script of this folder: one file, or several that are one script. */
export function createScript(redis: Redis, ...files: string[]): RunScript {
  const text = files.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('');
  const sha = createHash('sha1').update(text).digest('hex');
  return async (keys, args) => {
    try {
      return await redis.callBuffer('EVALSHA', sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!isReplyStarting(error, 'NOSCRIPT')) throw toFault(error);
    }
    try {
      return await redis.callBuffer('EVAL', text, keys.length, ...keys, ...args);
    } catch (error) {
      throw toFault(error);
    }
  };
}

function isReplyStarting(error: unknown, code: string): boolean {
  return error instanceof ReplyError && (error as Error).message.startsWith(code);
}

/** What the scripts say by an error reply, as the port's faults. */
function toFault(error: unknown): unknown {
  if (isReplyStarting(error, 'NOEPOCH')) return new MissingEpochFault();
  if (isReplyStarting(error, 'EPOCH')) return new EpochPresentFault();
  if (isReplyStarting(error, 'BEHIND')) return new GraphBehindFault(Number((error as Error).message.split(' ')[1]));
  return error;
}
