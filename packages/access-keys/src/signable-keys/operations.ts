import { parseAddress } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { RecordStore } from '../records/record-store.ts';
import { toDone, toName } from '../records/record-store.ts';
import { makeSealedPair } from './make-pair.ts';
import type { SignerPublicKey } from './seal.ts';
import type { SignableKeyRecord } from './signable-key.ts';

export interface SignableKeyContext {
  readonly store: RecordStore<SignableKeyRecord>;
}

export interface NewSignableKey {
  readonly projectId: string;
  /** An environment of the project. Its existence is not checked here. */
  readonly environmentId: string;
  /** Name for people, unique within an environment. */
  readonly name: string;
}

/** A key of an environment, by its address or its name. */
export interface SignableKeyName {
  readonly projectId: string;
  readonly environmentId: string;
  /** Exact; an address in any case. */
  readonly key: string;
}

/**
 * Creates an address whose private key only the signer can open.
 * @throws PublicError VALIDATION_ERROR for an invalid name, CONFLICT_ERROR when another key of the environment has it,
 * TOO_MANY_REQUESTS_ERROR when too many are being made; Error when no key pair could be made. Then nothing was changed
 */
export async function createSignableKey(
  { store, signerKey }: SignableKeyContext & { readonly signerKey: SignerPublicKey },
  { projectId, environmentId, ...wanted }: NewSignableKey,
): Promise<SignableKeyRecord> {
  const name = toName(wanted.name, 'a signable key');
  const pair = await makeSealedPair({ signerKey, environmentId });
  const made = await store.change((records) => {
    if (records.some((record) => record.environmentId === environmentId && record.name === name))
      throw conflict('A signable key of this environment has this name already: give it another one.');
    return { ...pair, projectId, environmentId, name, state: 'live', createdAt: Date.now() };
  });
  return toDone(made);
}

/**
 * Disables a key, so that the signer refuses it. Its address keeps its roles on chains.
 * @throws PublicError RESOURCE_NOT_FOUND when the environment has no such key, CONFLICT_ERROR when it is disabled
 * already
 */
export function disableSignableKey(context: SignableKeyContext, key: SignableKeyName): Promise<SignableKeyRecord> {
  return setState(context, key, 'disabled');
}

/** Enables a disabled key again. @throws PublicError as `disableSignableKey` */
export function enableSignableKey(context: SignableKeyContext, key: SignableKeyName): Promise<SignableKeyRecord> {
  return setState(context, key, 'live');
}

async function setState(
  { store }: SignableKeyContext,
  { projectId, environmentId, key }: SignableKeyName,
  state: SignableKeyRecord['state'],
): Promise<SignableKeyRecord> {
  const changed = await store.change((records) => {
    const own = records.filter((each) => each.projectId === projectId && each.environmentId === environmentId);
    const record = own.find((each) => each.address === parseAddress(key)) ?? own.find((each) => each.name === key);
    if (record === undefined)
      throw new PublicError('RESOURCE_NOT_FOUND', {
        message: 'This environment has no such signable key: name one of its list.',
      });
    if (record.state === state)
      throw conflict(
        state === 'live' ? 'The signable key is in use already.' : 'The signable key is disabled already.',
      );
    return { ...record, state };
  });
  return toDone(changed);
}

const conflict = (message: string) => new PublicError('CONFLICT_ERROR', { message });
