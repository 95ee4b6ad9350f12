import { createPrivateKey, type KeyObject } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import { privateKeyToAccount } from 'viem/accounts';
import { keccak256 } from 'viem/utils';
import type { RecordStore } from '../records/record-store.ts';
import {
  findSealMismatch,
  parseSealHeader,
  readJwkText,
  SEAL_ALGORITHMS,
  type SignerPublicKey,
  toSignerPublicKey,
} from '../signable-keys/seal.ts';
import type { SignableKeyRecord } from '../signable-keys/signable-key.ts';

/** A sealed key was not opened. The message says why and contains nothing of the key. */
export class SealRefused extends Error {
  override readonly name = 'SealRefused';
}

/** A private key of the signer, for opening sealed keys. */
export interface SignerPrivateKey {
  readonly publicKey: SignerPublicKey;
  readonly privateKey: KeyObject;
}

/** A transaction of type 2 (EIP-1559) that calls a contract without value. Fees are wei per unit of gas. */
export interface CallTransaction {
  readonly chainId: number;
  readonly nonce: number;
  /** `0x` and 40 hexadecimal digits. */
  readonly to: string;
  /** Hexadecimal. */
  readonly data: string;
  readonly gas: number;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A signed transaction, ready for nodes. */
export interface SignedCall {
  /** 32 bytes. */
  readonly hash: Buffer;
  readonly bytes: Buffer;
}

/** Opens sealed keys and signs with them. Only the process that signs may use it. */
export interface Signer {
  /** Public key that new keys are sealed to, that of the newest private key. */
  readonly sealsTo: SignerPublicKey;
  /**
   * Signs a personal message (EIP-191). The address of the record can be recovered from the signature.
   * @returns 65 bytes, hexadecimal
   * @throws SealRefused when the key is disabled, or the sealed text is not what the record says it is
   */
  signMessage(record: SignableKeyRecord, message: string): Promise<string>;
  /**
   * Signs a transaction. The same transaction always gives the same bytes.
   * @param options.isOpen true when the nonce has a transaction already. That must be completed even with a disabled
   * key
   * @throws SealRefused when the key is disabled and the nonce is new, or the sealed text does not match the record
   */
  signTransaction(
    record: SignableKeyRecord,
    transaction: CallTransaction,
    options?: { readonly isOpen: boolean },
  ): Promise<SignedCall>;
  /**
   * Seals a key to the newest key of the signer.
   * @returns null when it is sealed to that one already
   * @throws SealRefused when the sealed text is not what the record says it is
   */
  reseal(record: SignableKeyRecord): Promise<string | null>;
}

/**
 * Parses SIGNER_KEYS: private keys as JWKs, the newest first, in a JSON array or its base64url.
 * @throws Error that contains nothing of the text
 */
export function parseSignerKeys(text: string): readonly SignerPrivateKey[] {
  const jwks = readJwkText(text);
  if (!Array.isArray(jwks) || jwks.length === 0) throw new Error('expected an array of JWKs, the newest first');
  return jwks.map((jwk, at) => {
    try {
      return { publicKey: toSignerPublicKey(jwk), privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) };
    } catch {
      throw new Error(`key ${at + 1} is not a private JWK of kind EC on the curve P-256`);
    }
  });
}

/** Creates a signer. @param privateKeys all accepted keys, the newest first; new keys are sealed to that one */
export function createSigner({ privateKeys }: { readonly privateKeys: readonly SignerPrivateKey[] }): Signer {
  const [newest] = privateKeys;
  if (newest === undefined) throw new Error('a signer has one key at least');
  const open = (record: SignableKeyRecord) => openSealed(record, privateKeys);
  return {
    sealsTo: newest.publicKey,
    signMessage: async (record, message) => {
      if (record.state !== 'live') throw new SealRefused(`the signable key ${record.address} is disabled`);
      return toAccount(await open(record)).signMessage({ message });
    },
    signTransaction: async (record, transaction, { isOpen } = { isOpen: false }) => {
      if (record.state !== 'live' && !isOpen) throw new SealRefused(`the signable key ${record.address} is disabled`);
      return signCall(await open(record), transaction);
    },
    reseal: async (record) => {
      const opened = await open(record);
      const { kid, ...publicKey } = newest.publicKey;
      const { environmentId, address, sealed } = record;
      if (parseSealHeader(sealed).kid === kid) return null;
      const header = { ...SEAL_ALGORITHMS, kid, environmentId, address };
      return new CompactEncrypt(opened).setProtectedHeader(header).encrypt(publicKey);
    },
  };
}

/**
 * Does not trust the record, which anybody who can write to the log may have written. The sealed text names its
 * environment and address, and the address is computed from the private key again.
 */
async function openSealed(record: SignableKeyRecord, keys: readonly SignerPrivateKey[]): Promise<Uint8Array> {
  const refused = (why: string) => new SealRefused(`the signable key ${record.address} was not opened: ${why}`);
  const header = readHeader(record.sealed, refused);
  const mismatch = findSealMismatch(header, record);
  if (mismatch !== null) throw refused(mismatch);
  const key = keys.find(({ publicKey }) => publicKey.kid === header.kid);
  if (key === undefined) throw refused('it was sealed to a key that this signer does not have');
  const plaintext = await decrypt(record.sealed, key.privateKey);
  if (plaintext === null || addressOf(plaintext) !== record.address)
    throw refused('the sealed text is not the private key of the address');
  return plaintext;
}

function readHeader(sealed: string, refused: (why: string) => SealRefused) {
  try {
    return parseSealHeader(sealed);
  } catch (fault) {
    throw refused((fault as Error).message);
  }
}

async function decrypt(sealed: string, key: KeyObject): Promise<Uint8Array | null> {
  const allowed = {
    keyManagementAlgorithms: [SEAL_ALGORITHMS.alg],
    contentEncryptionAlgorithms: [SEAL_ALGORITHMS.enc],
  };
  return compactDecrypt(sealed, key, allowed).then(
    ({ plaintext }) => plaintext,
    () => null,
  );
}

const toAccount = (bytes: Uint8Array) => privateKeyToAccount(`0x${Buffer.from(bytes).toString('hex')}`);

async function signCall(key: Uint8Array, { to, data, gas, ...transaction }: CallTransaction): Promise<SignedCall> {
  const signed = await toAccount(key).signTransaction({
    ...transaction,
    type: 'eip1559',
    to: to as `0x${string}`,
    data: data as `0x${string}`,
    gas: BigInt(gas),
    value: 0n,
  });
  const toBytes = (text: string) => Buffer.from(text.slice(2), 'hex');
  return { hash: toBytes(keccak256(signed)), bytes: toBytes(signed) };
}

/** Null for bytes that are no private key. Errors of the library are dropped, because they may quote the bytes. */
function addressOf(bytes: Uint8Array): string | null {
  try {
    return toAccount(bytes).address.toLowerCase();
  } catch {
    return null;
  }
}

/** `changed`: the record was changed meanwhile, so nothing was stored. `refused`: the signer cannot open it. */
export type ResealOutcome =
  | { readonly kind: 'newest' | 'resealed' | 'changed' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Seals a key to the newest key of the signer and stores it. Only the process that signs does this. */
export async function resealSignableKey(
  { store, signer }: { readonly store: RecordStore<SignableKeyRecord>; readonly signer: Pick<Signer, 'reseal'> },
  record: SignableKeyRecord,
): Promise<ResealOutcome> {
  let sealed: string | null;
  try {
    sealed = await signer.reseal(record);
  } catch (error) {
    if (error instanceof SealRefused) return { kind: 'refused', reason: error.message };
    throw error;
  }
  if (sealed === null) return { kind: 'newest' };
  const text = sealed;
  const changed = await store.change((records) => {
    const current = records.find(({ address }) => address === record.address);
    return current?.sealed === record.sealed ? { ...current, sealed: text } : null;
  });
  return { kind: changed === null ? 'changed' : 'resealed' };
}
