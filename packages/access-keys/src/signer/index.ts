// Decrypts sealed keys and signs with them. For use only in the signing process.
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

/** The signable key cannot be used. The message contains no key material. */
export class UnusableKey extends Error {
  override readonly name = 'UnusableKey';
}

export interface SignerPrivateKey {
  readonly publicKey: SignerPublicKey;
  readonly privateKey: KeyObject;
}

/** A contract call that transfers no ether (EIP-1559). Fees are in wei per unit of gas. */
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

export interface SignedCall {
  /** 32 bytes. */
  readonly hash: Buffer;
  readonly bytes: Buffer;
}

export interface Signer {
  /** Public key of the newest private key, for which new keys are sealed. */
  readonly sealingKey: SignerPublicKey;
  /**
   * Signs a personal message (EIP-191).
   * @returns 65 bytes in hexadecimal
   * @throws UnusableKey for a disabled key, or a sealed key that does not match the record
   */
  signMessage(record: SignableKeyRecord, message: string): Promise<string>;
  /**
   * Signs deterministically: the same transaction always results in the same bytes.
   * @param options.isOpen the nonce already has a transaction, which must be completed even with a disabled key
   * @throws UnusableKey for a disabled key with a new nonce, or a sealed key that does not match the record
   */
  signTransaction(
    record: SignableKeyRecord,
    transaction: CallTransaction,
    options?: { readonly isOpen: boolean },
  ): Promise<SignedCall>;
  /** Reseals a key for the newest private key; null if unnecessary. @throws UnusableKey if the record does not match */
  reseal(record: SignableKeyRecord): Promise<string | null>;
}

/** Parses SIGNER_KEYS: private JWKs, newest first, as JSON or base64url. Errors never quote the value. */
export function parseSignerKeys(text: string): readonly SignerPrivateKey[] {
  const jwks = readJwkText(text);
  if (!Array.isArray(jwks) || jwks.length === 0) throw new Error('expected an array of JWKs, newest first');
  return jwks.map((jwk, at) => {
    try {
      return { publicKey: toSignerPublicKey(jwk), privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) };
    } catch {
      throw new Error(`key ${at + 1} is not a private EC JWK on the P-256 curve`);
    }
  });
}

/** @param privateKeys newest first; keys are sealed for the newest private key */
export function createSigner({ privateKeys }: { readonly privateKeys: readonly SignerPrivateKey[] }): Signer {
  const [newest] = privateKeys;
  if (newest === undefined) throw new Error('a signer requires at least one private key');
  const unsealRecord = (record: SignableKeyRecord) => unseal(record, privateKeys);
  return {
    sealingKey: newest.publicKey,
    signMessage: async (record, message) => {
      if (record.state !== 'live') throw new UnusableKey(`the signable key ${record.address} is disabled`);
      return toAccount(await unsealRecord(record)).signMessage({ message });
    },
    signTransaction: async (record, transaction, { isOpen } = { isOpen: false }) => {
      if (record.state !== 'live' && !isOpen) throw new UnusableKey(`the signable key ${record.address} is disabled`);
      return signCall(await unsealRecord(record), transaction);
    },
    reseal: async (record) => {
      const unsealed = await unsealRecord(record);
      const { kid, ...publicKey } = newest.publicKey;
      const { environmentId, address, sealed } = record;
      if (parseSealHeader(sealed).kid === kid) return null;
      const header = { ...SEAL_ALGORITHMS, kid, environmentId, address };
      return new CompactEncrypt(unsealed).setProtectedHeader(header).encrypt(publicKey);
    },
  };
}

/** Anyone with access to the log could write a record, so the sealed environment and address are verified. */
async function unseal(record: SignableKeyRecord, keys: readonly SignerPrivateKey[]): Promise<Uint8Array> {
  const refused = (reason: string) => new UnusableKey(`the signable key ${record.address} cannot be used: ${reason}`);
  const header = readHeader(record.sealed, refused);
  const mismatch = findSealMismatch(header, record);
  if (mismatch !== null) throw refused(mismatch);
  const key = keys.find(({ publicKey }) => publicKey.kid === header.kid);
  if (key === undefined) throw refused('this signer does not have the key to decrypt it');
  const unsealed = await compactDecrypt(record.sealed, key.privateKey, ALLOWED).catch(() => null);
  if (unsealed === null || addressOf(unsealed.plaintext) !== record.address)
    throw refused('the sealed key is not the private key of the address');
  return unsealed.plaintext;
}

function readHeader(sealed: string, refused: (reason: string) => UnusableKey) {
  try {
    return parseSealHeader(sealed);
  } catch (fault) {
    throw refused((fault as Error).message);
  }
}

const { alg, enc } = SEAL_ALGORITHMS;
const ALLOWED = { keyManagementAlgorithms: [alg], contentEncryptionAlgorithms: [enc] };

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

/** Returns null for bytes that are not a private key. Hides library errors, which may contain the bytes. */
function addressOf(bytes: Uint8Array): string | null {
  try {
    return toAccount(bytes).address.toLowerCase();
  } catch {
    return null;
  }
}

/** `changed`: the record was changed concurrently, so nothing was stored. */
export type ResealOutcome =
  | { readonly kind: 'newest' | 'resealed' | 'changed' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Reseals a key for the signer's newest private key and stores the result. */
export async function resealSignableKey(
  { store, signer }: { readonly store: RecordStore<SignableKeyRecord>; readonly signer: Pick<Signer, 'reseal'> },
  record: SignableKeyRecord,
): Promise<ResealOutcome> {
  const sealed = await signer.reseal(record).catch((error: unknown) => {
    if (error instanceof UnusableKey) return error;
    throw error;
  });
  if (sealed instanceof UnusableKey) return { kind: 'refused', reason: sealed.message };
  if (sealed === null) return { kind: 'newest' };
  const changed = await store.change((records) => {
    const current = records.find(({ address }) => address === record.address);
    return current?.sealed === record.sealed ? { ...current, sealed } : null;
  });
  return { kind: changed === null ? 'changed' : 'resealed' };
}
