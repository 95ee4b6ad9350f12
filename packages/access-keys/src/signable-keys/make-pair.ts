import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createConcurrencyLimiter } from '../concurrency-limiter.ts';
import { ADDRESS, findSealMismatch, parseSealHeader, type SignerPublicKey } from './seal.ts';

export interface PairRequest {
  readonly signerKey: SignerPublicKey;
  readonly environmentId: string;
}

export interface SealedPair {
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
  /** Compact JWE that only the signer can decrypt. */
  readonly sealed: string;
}

const PAIR_PROCESS = fileURLToPath(new URL('./pair-process.ts', import.meta.url));
/** On an idle machine, creating a key pair takes a third of a second. */
const PAIR_MAX_MS = 20_000;

/** Each process uses 50 MiB and a third of a second of CPU time. The last caller in a full queue waits two seconds. */
const runLimited = createConcurrencyLimiter({
  concurrentMax: 2,
  waitingMax: 8,
  busyMessage: 'Too many keys are being created. Try again in a few seconds.',
  retryAfterS: 3,
});

/**
 * Creates a key pair in a child process, so that the private key never exists in this process.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR if the queue is full; Error if the child process fails
 */
export const makeSealedPair = (request: PairRequest): Promise<SealedPair> => runLimited(() => runPairProcess(request));

async function runPairProcess(request: PairRequest): Promise<SealedPair> {
  // The child process cannot write files, start processes or be debugged. Its environment is empty, because Node
  // options could write its memory to a file.
  const child = spawn(process.execPath, ['--permission', '--allow-fs-read=*', PAIR_PROCESS], {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: PAIR_MAX_MS,
    killSignal: 'SIGKILL',
  });
  // If the child exits before reading its input, the exit code reports the failure.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(request));
  const exited = new Promise<number | null>((done, fail) => {
    child.once('error', fail);
    child.once('close', done);
  });
  const [output, fault, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  if (code !== 0) throw new Error(`no key pair was created: ${/^\w{1,40}$/.exec(fault)?.[0] ?? `exit code ${code}`}`);
  return toPair(output, request);
}

function toPair(output: string, { signerKey, environmentId }: PairRequest): SealedPair {
  const { address, sealed } = JSON.parse(output) as SealedPair;
  const header = parseSealHeader(sealed);
  const mismatch = findSealMismatch(header, { environmentId, address });
  if (!ADDRESS.test(address) || header.kid !== signerKey.kid || mismatch !== null)
    throw new Error('no key pair was created: the sealed key belongs to another request');
  return { address, sealed };
}
