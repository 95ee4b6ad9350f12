// Child process that creates one key pair. The private key exists only in this process's memory. Reads the signer's
// public key from standard input, and writes the address and the sealed key to standard output. Reports only error
// names, because messages could contain the key.
import { text } from 'node:stream/consumers';
import { CompactEncrypt } from 'jose';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { PairRequest, SealedPair } from './make-pair.ts';
import { SEAL_ALGORITHMS, type SealHeader } from './seal.ts';

async function makePair({ signerKey, environmentId }: PairRequest): Promise<SealedPair> {
  const privateKey = generatePrivateKey();
  const address = privateKeyToAddress(privateKey).toLowerCase();
  const { kid, ...publicKey } = signerKey;
  const header: SealHeader = { kid, environmentId, address };
  const sealed = await new CompactEncrypt(Buffer.from(privateKey.slice(2), 'hex'))
    .setProtectedHeader({ ...SEAL_ALGORITHMS, ...header })
    .encrypt(publicKey);
  return { address, sealed };
}

try {
  process.stdout.write(JSON.stringify(await makePair(JSON.parse(await text(process.stdin)) as PairRequest)));
} catch (fault) {
  process.stderr.write(fault instanceof Error ? fault.name : 'UnknownError');
  process.exitCode = 1;
}
