import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createTurns } from '../turns.ts';
import { ADDRESS, findSealMismatch, parseSealHeader } from './seal.ts';
import type { SignerPublicKey } from './signer-public-key.ts';

/** What a pair is made for. */
export interface PairRequest {
  readonly signerKey: SignerPublicKey;
  readonly environmentId: string;
}

/** What is known of a pair outside of the process that made it. */
export interface SealedPair {
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
  /** The private key, for the signer alone: JWE, compact. */
  readonly sealed: string;
}

const PAIR_PROCESS = fileURLToPath(new URL('./pair-process.ts', import.meta.url));
/** It takes a third of a second; a busy machine may take its time. */
const PAIR_MAX_MS = 20_000;

/**
 * A process is a core for a third of a second, and 50 MiB: two at a time in all of this process, whoever asks. Behind eight
 * others somebody waits for two seconds.
 */
const inTurn = createTurns({
  atOnce: 2,
  waitingMax: 8,
  full: 'Too many keys are made at this moment: try again in a few seconds.',
  retryAfterS: 3,
});

/**
 * Makes an Ethereum key pair in a process of its own, which ends with it. This process never holds the private key.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when too many others wait; Error when no pair was made. Then none is anywhere
 */
export function makeSealedPair(request: PairRequest): Promise<SealedPair> {
  return inTurn(() => runPairProcess(request));
}

async function runPairProcess(request: PairRequest): Promise<SealedPair> {
  // It can write no file, start no process and be looked into by no debugger, and gets nothing of this environment: an
  // option of Node in it could have the memory written down.
  const child = spawn(process.execPath, ['--permission', '--allow-fs-read=*', PAIR_PROCESS], {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: PAIR_MAX_MS,
    killSignal: 'SIGKILL',
  });
  // One that ends before it has read is told by its exit code.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(request));
  const ended = new Promise<number | null>((done, fail) => {
    child.once('error', fail);
    child.once('close', done);
  });
  const [output, fault, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`no key pair was made: ${/^\w{1,40}$/.exec(fault)?.[0] ?? `exit code ${code}`}`);
  return toPair(output, request);
}

/** @throws Error when the process has answered something else than what it was asked for */
function toPair(output: string, { signerKey, environmentId }: PairRequest): SealedPair {
  const { address, sealed } = JSON.parse(output) as SealedPair;
  const header = parseSealHeader(sealed);
  const mismatch = findSealMismatch(header, { environmentId, address });
  if (!ADDRESS.test(address) || header.kid !== signerKey.kid || mismatch !== null)
    throw new Error('no key pair was made: its sealed text is of something else');
  return { address, sealed };
}
