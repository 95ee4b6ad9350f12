import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createTurns } from '../turns.ts';
import { ADDRESS, findSealMismatch, parseSealHeader, type SignerPublicKey } from './seal.ts';

export interface PairRequest {
  readonly signerKey: SignerPublicKey;
  readonly environmentId: string;
}

export interface SealedPair {
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
  /** Compact JWE that only the signer can open. */
  readonly sealed: string;
}

const PAIR_PROCESS = fileURLToPath(new URL('./pair-process.ts', import.meta.url));
/** It takes a third of a second on an idle machine. */
const PAIR_MAX_MS = 20_000;

/** Each pair takes a process with a third of a second of one core and 50 MiB. The last of eight waits two seconds. */
const inTurn = createTurns({
  concurrentMax: 2,
  waitingMax: 8,
  full: 'Too many keys are being created. Try again in a few seconds.',
  retryAfterS: 3,
});

/**
 * This process never has the private key.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when too many callers wait; Error when no pair was made
 */
export const makeSealedPair = (request: PairRequest): Promise<SealedPair> => inTurn(() => runPairProcess(request));

async function runPairProcess(request: PairRequest): Promise<SealedPair> {
  // The child may not write files, start processes or be debugged, and gets no environment variables: Node options could
  // write its memory to a file.
  const child = spawn(process.execPath, ['--permission', '--allow-fs-read=*', PAIR_PROCESS], {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: PAIR_MAX_MS,
    killSignal: 'SIGKILL',
  });
  // A child that ends before it has read its input is reported by its exit code.
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

function toPair(output: string, { signerKey, environmentId }: PairRequest): SealedPair {
  const { address, sealed } = JSON.parse(output) as SealedPair;
  const header = parseSealHeader(sealed);
  const mismatch = findSealMismatch(header, { environmentId, address });
  if (!ADDRESS.test(address) || header.kid !== signerKey.kid || mismatch !== null)
    throw new Error('no key pair was made: the sealed text is of another request');
  return { address, sealed };
}
