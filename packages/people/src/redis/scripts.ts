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
  /** Lua code to prepend to the files. */
  readonly before?: string;
  /** Names of files in `lua`, concatenated in this order. */
  readonly files: readonly string[];
  readonly flag: string;
}

/** Without a flag, Redis refuses the script when it is out of memory. */
const SCRIPTS = {
  applyFacts: {
    before: PRESENT_RUN_LUA,
    files: ['unlink-sides', 'decided', 'components', 'unlink', 'logged', 'facts'],
    flag: '',
  },
  trimOutbox: { files: ['trim'], flag: 'allow-oom' },
  forgetIdentities: { files: ['remove-identities', 'forget'], flag: '' },
  loadOverrides: { files: ['load'], flag: '' },
  loadUnlinkSides: { files: ['unlink-sides', 'load-unlink-sides'], flag: '' },
  loadSuspects: { files: ['load-suspects'], flag: '' },
  loadDecided: { files: ['decided', 'load-decided'], flag: '' },
  putHold: { files: ['holds', 'put-hold'], flag: '' },
  confirmHold: { files: ['holds', 'confirm-hold'], flag: '' },
  heldFrom: { files: ['held-from'], flag: 'no-writes' },
  releaseHold: { files: ['holds', 'release-hold'], flag: 'allow-oom' },
  raiseFences: { files: ['raise-fences'], flag: '' },
  // Allowed when out of memory because links and consents are unavailable until all fences are enforced.
  enforceFences: { files: ['unlink-sides', 'remove-identities', 'enforce-fences'], flag: 'allow-oom' },
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

export const SCRIPT_TEXTS = Object.fromEntries(
  Object.entries<ScriptParts>(SCRIPTS).map(([name, script]) => [name, toText(script)]),
) as Readonly<Record<ScriptName, string>>;

function toText({ before, files, flag }: ScriptParts): string {
  const first = flag === '' ? '#!lua' : `#!lua flags=${flag}`;
  const parts = files.map((file) => readFileSync(new URL(`lua/${file}.lua`, import.meta.url), 'utf8'));
  return [first, LUA_LAYOUT, ...(before === undefined ? [] : [before]), ...parts].join('\n');
}

export type ScriptArgument = string | number | Buffer;

/** Runs a script. Strings in the reply are buffers. @throws a fault in `FAULTS`, or a connection fault */
export type RunScript = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<unknown>;

/** Creates a function that runs a script with EVALSHA and falls back to EVAL. */
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

/** Faults by the code of the error reply. */
const FAULTS: Readonly<Record<string, new () => Error>> = {
  NOEPOCH: MissingEpochFault,
  NOFENCES: MissingFencesFault,
  RESTARTED: RestartedFault,
  NOHOLD: MissingHoldFault,
  EPOCH: EpochPresentFault,
  LAGGING: LaggingStoreFault,
};

function toFault(error: unknown): unknown {
  if (!isReplyError(error)) return error;
  const [code = '', detail] = error.message.split(' ');
  if (code === 'BEHIND') return new GraphBehindFault(Number(detail));
  const Fault = FAULTS[code];
  return Fault === undefined ? error : new Fault();
}
