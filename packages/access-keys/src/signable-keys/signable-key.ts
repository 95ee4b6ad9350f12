import { parseAddress, type SignableKeyRecord, signableKeyCodec, TOPICS } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { RecordKind } from '../records/record-log.ts';
import { type RecordStore, toName } from '../records/record-store.ts';
import { makeSealedPair } from './make-pair.ts';
import { ADDRESS, type SignerPublicKey } from './seal.ts';

export type { SignableKeyRecord } from '@playline/contracts';

export const SIGNABLE_KEYS: RecordKind<SignableKeyRecord> = {
  name: 'signable-keys',
  topic: TOPICS.signableKeys.name,
  codec: signableKeyCodec,
  idOf: ({ address }) => address,
};

/** A signable key without its sealed private key. */
export type ShownSignableKey = Omit<SignableKeyRecord, 'sealed'>;

export const toShownSignableKey = ({ sealed: _, ...shown }: SignableKeyRecord): ShownSignableKey => shown;

/** Returns the environment's oldest live key. */
export function findSigner<K extends Pick<SignableKeyRecord, 'environmentId' | 'state' | 'createdAt'>>(
  keys: readonly K[],
  environmentId: string,
): K | undefined {
  const live = keys.filter((key) => key.environmentId === environmentId && key.state === 'live');
  return live.toSorted((a, b) => a.createdAt - b.createdAt)[0];
}

export interface SignableKeyContext {
  readonly store: RecordStore<SignableKeyRecord>;
}

export interface NewSignableKey {
  readonly projectId: string;
  /** The caller must check that the environment exists. */
  readonly environmentId: string;
  /** Unique within an environment. */
  readonly name: string;
}

export interface SignableKeyName {
  readonly projectId: string;
  readonly environmentId: string;
  /** Address (case-insensitive) or exact name. */
  readonly key: string;
}

/**
 * @throws PublicError VALIDATION_ERROR for an invalid name, CONFLICT_ERROR for a name in use, TOO_MANY_REQUESTS_ERROR
 * if too many keys are being created; Error if key generation fails
 */
export async function createSignableKey(
  { store, signerKey }: SignableKeyContext & { readonly signerKey: SignerPublicKey },
  { projectId, environmentId, ...wanted }: NewSignableKey,
): Promise<SignableKeyRecord> {
  const name = toName(wanted.name, 'a signable key');
  const pair = await makeSealedPair({ signerKey, environmentId });
  return store.change((records) => {
    if (records.some((record) => record.environmentId === environmentId && record.name === name))
      throw conflict('The environment already has a signable key with this name.');
    return { ...pair, projectId, environmentId, name, state: 'live', createdAt: Date.now() };
  });
}

/** The signer rejects disabled keys. @throws PublicError RESOURCE_NOT_FOUND, CONFLICT_ERROR */
export const disableSignableKey = (context: SignableKeyContext, key: SignableKeyName): Promise<SignableKeyRecord> =>
  setState(context, key, 'disabled');

/** @throws PublicError see `disableSignableKey` */
export const enableSignableKey = (context: SignableKeyContext, key: SignableKeyName): Promise<SignableKeyRecord> =>
  setState(context, key, 'live');

async function setState(
  { store }: SignableKeyContext,
  { projectId, environmentId, key }: SignableKeyName,
  state: SignableKeyRecord['state'],
): Promise<SignableKeyRecord> {
  return store.change((records) => {
    const candidates = records.filter((each) => each.projectId === projectId && each.environmentId === environmentId);
    const byAddress = candidates.find(({ address }) => address === parseAddress(key));
    const record = byAddress ?? candidates.find(({ name }) => name === key);
    const message = 'The signable key does not exist in this environment. Choose a key from the list.';
    if (record === undefined) throw new PublicError('RESOURCE_NOT_FOUND', { message });
    if (record.state === state)
      throw conflict(`The signable key is already ${state === 'live' ? 'enabled' : 'disabled'}.`);
    return { ...record, state };
  });
}

const conflict = (message: string) => new PublicError('CONFLICT_ERROR', { message });

/** `keccak256` of the role names, as in OpenZeppelin's AccessControl. Constants avoid loading a chain library. */
export const CONTRACT_ROLES = {
  SIGNER_ROLE: '0xe2f4eaae4a9751e85a3e4a7b9587827a877f29914755229b07a7b2da98285f70',
  MINTER_ROLE: '0x9f2df0fed2c77648de5860a4cc508cd0818c85b8b8a1ab4ceeef8d981c8956a6',
} as const;

export type ContractRole = keyof typeof CONTRACT_ROLES;

/** The selector is the first four bytes of the signature's `keccak256`. */
const GRANT_ROLE = { signature: 'grantRole(bytes32,address)', selector: '0x2f2ff15d' } as const;

/** A call that the contract's administrator must send. */
export interface GrantCall {
  readonly role: ContractRole;
  /** `grantRole(bytes32,address)` */
  readonly signature: string;
  readonly to: string;
  /** Calldata, hexadecimal. */
  readonly data: string;
}

/**
 * Returns the calls that grant an address the contract's roles.
 * @throws Error unless both addresses are `0x` and 40 lower-case hexadecimal digits
 */
export function grantCallsOf({ contract, address }: { contract: string; address: string }): readonly GrantCall[] {
  if (!ADDRESS.test(contract) || !ADDRESS.test(address))
    throw new Error('expected addresses with 0x and 40 lower-case hexadecimal digits');
  const [{ signature, selector }, argument] = [GRANT_ROLE, address.slice(2).padStart(64, '0')];
  return (['SIGNER_ROLE', 'MINTER_ROLE'] as const).map((role) => {
    const data = `${selector}${CONTRACT_ROLES[role].slice(2)}${argument}`;
    return { role, signature, to: contract, data };
  });
}
