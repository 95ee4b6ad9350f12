import { readFileSync } from 'node:fs';
import { isReplyError, PRESENT_RUN_LUA, type Redis, runScriptBuffer } from '@playline/stores/redis';
import { LaggingStoreFault } from '../consents.ts';
import { GraphBehindFault } from '../graph.ts';
import {
  EpochPresentFault,
  MissingEpochFault,
  MissingFencesFault,
  MissingHoldFault,
  RestartedFault,
} from '../people.ts';
import { LUA_LAYOUT } from './layout.ts';

interface ScriptParts {
  /** Lua in front of the files. */
  readonly before?: string;
  /** Names of files in `lua`, in order. */
  readonly files: readonly string[];
  readonly flag: string;
}

/**
 * The parts of each script. Without a flag, Redis refuses a whole script when memory is out, and
 * never runs half of one.
 */
const SCRIPTS = {
  applyFacts: {
    before: PRESENT_RUN_LUA,
    files: ['unlink-sides', 'decided', 'components', 'unlink', 'logged', 'facts'],
    flag: '',
  },
  // It frees memory.
  trimOutbox: { files: ['trim'], flag: 'allow-oom' },
  forgetIdentities: { files: ['take-out', 'forget'], flag: '' },
  loadOverrides: { files: ['load'], flag: '' },
  loadUnlinkSides: { files: ['unlink-sides', 'load-unlink-sides'], flag: '' },
  loadSuspects: { files: ['load-suspects'], flag: '' },
  loadDecided: { files: ['decided', 'load-decided'], flag: '' },
  putHold: { files: ['holds', 'put-hold'], flag: '' },
  confirmHold: { files: ['holds', 'confirm-hold'], flag: '' },
  heldFrom: { files: ['held-from'], flag: 'no-writes' },
  releaseHold: { files: ['holds', 'release-hold'], flag: 'allow-oom' },
  raiseFences: { files: ['raise-fences'], flag: '' },
  // Also without memory: it mostly frees some, and until it is done no link is applied and no consent is read.
  enforceFences: { files: ['unlink-sides', 'take-out', 'enforce-fences'], flag: 'allow-oom' },
  fenceStatus: { before: PRESENT_RUN_LUA, files: ['fence-status'], flag: 'no-writes' },
  completeFences: { before: PRESENT_RUN_LUA, files: ['complete-fences'], flag: 'allow-oom' },
  mintEpoch: { before: PRESENT_RUN_LUA, files: ['mint-epoch'], flag: '' },
  forgetConsents: { files: ['forget-consents'], flag: '' },
  putConsent: { before: PRESENT_RUN_LUA, files: ['put-consent'], flag: '' },
  readConsent: { before: PRESENT_RUN_LUA, files: ['read-consent'], flag: 'no-writes' },
  markConsents: { before: PRESENT_RUN_LUA, files: ['mark-consents'], flag: '' },
  consentSyncState: { before: PRESENT_RUN_LUA, files: ['consent-sync-state'], flag: 'no-writes' },
} as const satisfies Readonly<Record<string, ScriptParts>>;
export type ScriptName = keyof typeof SCRIPTS;

/** The full text of each script, for Redis and for the linter. */
export const SCRIPT_TEXTS = Object.fromEntries(
  Object.entries<ScriptParts>(SCRIPTS).map(([name, script]) => [name, toText(script)]),
) as Readonly<Record<ScriptName, string>>;

function toText({ before, files, flag }: ScriptParts): string {
  const first = flag === '' ? '#!lua' : `#!lua flags=${flag}`;
  const parts = files.map((file) => readFileSync(new URL(`lua/${file}.lua`, import.meta.url), 'utf8'));
  return [first, LUA_LAYOUT, ...(before === undefined ? [] : [before]), ...parts].join('\n');
}

export type ScriptArgument = string | number | Buffer;

/**
 * Runs one script; texts of its reply are buffers.
 * @throws the faults that the scripts signal by error replies, or a fault of the connection
 */
export type RunScript = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<unknown>;

/** Creates the function that runs a script by its hash, or by its text if the server does not know it yet. */
export function createScript(redis: Redis, name: ScriptName): RunScript {
  const script = SCRIPT_TEXTS[name];
  return async (keys, args) => {
    try {
      return await runScriptBuffer(redis, { script, keys, args });
    } catch (error) {
      throw toFault(error);
    }
  };
}

function isReplyStarting(error: unknown, code: string): boolean {
  return isReplyError(error) && error.message.startsWith(code);
}

/** Turns error replies of scripts into faults of the ports. */
function toFault(error: unknown): unknown {
  if (isReplyStarting(error, 'NOEPOCH')) return new MissingEpochFault();
  if (isReplyStarting(error, 'NOFENCES')) return new MissingFencesFault();
  if (isReplyStarting(error, 'RESTARTED')) return new RestartedFault();
  if (isReplyStarting(error, 'NOHOLD')) return new MissingHoldFault();
  if (isReplyStarting(error, 'EPOCH')) return new EpochPresentFault();
  if (isReplyStarting(error, 'BEHIND')) return new GraphBehindFault(Number((error as Error).message.split(' ')[1]));
  if (isReplyStarting(error, 'LAGGING')) return new LaggingStoreFault();
  return error;
}
