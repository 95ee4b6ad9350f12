// Opens sealed keys and signs with them; only for the signing process.
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

/** The message contains nothing of the key. */
export class SealRefused extends Error {
  override readonly name = 'SealRefused';
}

export interface SignerPrivateKey {
  readonly publicKey: SignerPublicKey;
  readonly privateKey: KeyObject;
}

/** A contract call without value (EIP-1559). Fees are wei per unit of gas. */
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
  /** Of the newest private key. */
  readonly sealsTo: SignerPublicKey;
  /**
   * Signs a personal message (EIP-191).
   * @returns 65 bytes, hexadecimal
   * @throws SealRefused for a disabled key, or a sealed text that does not match the record
   */
  signMessage(record: SignableKeyRecord, message: string): Promise<string>;
  /**
   * The same transaction always gives the same bytes.
   * @param options.isOpen the nonce has a transaction already, which must be completed even with a disabled key
   * @throws SealRefused for a disabled key with a new nonce, or a sealed text that does not match the record
   */
  signTransaction(
    record: SignableKeyRecord,
    transaction: CallTransaction,
    options?: { readonly isOpen: boolean },
  ): Promise<SignedCall>;
  /** Seals a key to the newest key; null when it is already. @throws SealRefused when the text does not match the record */
  reseal(record: SignableKeyRecord): Promise<string | null>;
}

/** SIGNER_KEYS: private JWKs, the newest first, as JSON or base64url. @throws Error without the text */
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

/** @param privateKeys the newest first; keys are sealed to that one */
export function createSigner({ privateKeys }: { readonly privateKeys: readonly SignerPrivateKey[] }): Signer {
  const [newest] = privateKeys;
  if (newest === undefined) throw new Error('a signer needs at least one key');
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

/** Anyone with access to the log could write a record, so environment and address of the sealed text are checked. */
async function openSealed(record: SignableKeyRecord, keys: readonly SignerPrivateKey[]): Promise<Uint8Array> {
  const refused = (reason: string) => new SealRefused(`the signable key ${record.address} was not opened: ${reason}`);
  const header = readHeader(record.sealed, refused);
  const mismatch = findSealMismatch(header, record);
  if (mismatch !== null) throw refused(mismatch);
  const key = keys.find(({ publicKey }) => publicKey.kid === header.kid);
  if (key === undefined) throw refused('this signer does not have its key');
  const opened = await compactDecrypt(record.sealed, key.privateKey, ALLOWED).catch(() => null);
  if (opened === null || addressOf(opened.plaintext) !== record.address)
    throw refused('the sealed text is not the private key of the address');
  return opened.plaintext;
}

function readHeader(sealed: string, refused: (reason: string) => SealRefused) {
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

/** Null for bytes that are no private key. Errors of the library may quote the bytes. */
function addressOf(bytes: Uint8Array): string | null {
  try {
    return toAccount(bytes).address.toLowerCase();
  } catch {
    return null;
  }
}

/** `changed`: another change was made, so nothing was stored. */
export type ResealOutcome =
  | { readonly kind: 'newest' | 'resealed' | 'changed' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Seals a key to the newest key of the signer and stores it. */
export async function resealSignableKey(
  { store, signer }: { readonly store: RecordStore<SignableKeyRecord>; readonly signer: Pick<Signer, 'reseal'> },
  record: SignableKeyRecord,
): Promise<ResealOutcome> {
  const sealed = await signer.reseal(record).catch((error: unknown) => {
    if (error instanceof SealRefused) return error;
    throw error;
  });
  if (sealed instanceof SealRefused) return { kind: 'refused', reason: sealed.message };
  if (sealed === null) return { kind: 'newest' };
  const changed = await store.change((records) => {
    const current = records.find(({ address }) => address === record.address);
    return current?.sealed === record.sealed ? { ...current, sealed } : null;
  });
  return { kind: changed === null ? 'changed' : 'resealed' };
}
