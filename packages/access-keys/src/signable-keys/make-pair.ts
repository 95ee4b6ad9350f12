import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createTurns } from '../turns.ts';
import { ADDRESS, findSealMismatch, parseSealHeader, type SignerPublicKey } from './seal.ts';

/** A request for a key pair. */
export interface PairRequest {
  readonly signerKey: SignerPublicKey;
  readonly environmentId: string;
}

/** What the process that made the pair reveals of it. */
export interface SealedPair {
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
  /** The private key as a compact JWE that only the signer can open. */
  readonly sealed: string;
}

const PAIR_PROCESS = fileURLToPath(new URL('./pair-process.ts', import.meta.url));
/** It takes a third of a second, and longer on a busy machine. */
const PAIR_MAX_MS = 20_000;

/**
 * Each pair takes a process, a third of a second of one core, and 50 MiB. So this process makes two at a time, whoever
 * asks. With eight waiting, the last one waits two seconds.
 */
const inTurn = createTurns({
  concurrentMax: 2,
  waitingMax: 8,
  full: 'Too many keys are made at this moment: try again in a few seconds.',
  retryAfterS: 3,
});

/**
 * Makes an Ethereum key pair in a child process that ends with it. This process never holds the private key.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when too many others wait; Error when no pair was made. In both cases no
 * pair exists
 */
export function makeSealedPair(request: PairRequest): Promise<SealedPair> {
  return inTurn(() => runPairProcess(request));
}

async function runPairProcess(request: PairRequest): Promise<SealedPair> {
  // The child may not write files, start processes or be debugged. It gets nothing of our environment variables: an
  // option of Node in one of them could have its memory written to a file.
  const child = spawn(process.execPath, ['--permission', '--allow-fs-read=*', PAIR_PROCESS], {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: PAIR_MAX_MS,
    killSignal: 'SIGKILL',
  });
  // If it ends before it has read its input, its exit code says so.
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

/** @throws Error when the answer does not fit the request */
function toPair(output: string, { signerKey, environmentId }: PairRequest): SealedPair {
  const { address, sealed } = JSON.parse(output) as SealedPair;
  const header = parseSealHeader(sealed);
  const mismatch = findSealMismatch(header, { environmentId, address });
  if (!ADDRESS.test(address) || header.kid !== signerKey.kid || mismatch !== null)
    throw new Error('no key pair was made: its sealed text is of something else');
  return { address, sealed };
}
