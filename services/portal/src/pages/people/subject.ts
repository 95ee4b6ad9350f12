import { ID_CODE_POINTS_MAX, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { type IdentityKeyer, isPlaceholder, USER_KINDS } from '@playline/people';
import type { FormValues } from '../../frame/page.ts';

/** The identity that a form names. */
export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null when it was named by its key. */
  readonly named: { readonly kind: IdentityKind; readonly id: string } | null;
}

/** Kinds of identities, and `key` for an identity key. */
export const SUBJECT_CHOICES = [
  { value: 'anonymous', text: 'anonymous id' },
  { value: 'untyped', text: 'user id without a type' },
  ...IDENTITY_KINDS.filter((kind) => kind !== 'anonymous' && kind !== 'untyped').map((value) => ({
    value,
    text: `user id of type ${value}`,
  })),
  { value: 'key', text: 'identity key' },
];

const KEY = /^[0-9a-f]{32}$/i;

/** @throws PublicError VALIDATION_ERROR, without the id */
function assertId(field: string, id: string): void {
  if (id === '') throw invalidField(field, 'Enter the id of a person.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField(field, `An id has at most ${ID_CODE_POINTS_MAX} characters.`);
}

/** @throws PublicError VALIDATION_ERROR, without the id */
export function subjectOf(values: FormValues, environmentId: string, keyOf: IdentityKeyer): Subject {
  const [given, id] = [values.text('kind'), values.text('id')];
  assertId('id', id);
  if (given === 'key') {
    const key = KEY.test(id) ? Buffer.from(id, 'hex') : ZERO_KEY;
    if (key.equals(ZERO_KEY)) throw invalidField('id', 'An identity key has 32 hexadecimal digits, not all of them 0.');
    return { environmentId, key, named: null };
  }
  const kind = IDENTITY_KINDS.find((each) => each === given);
  if (kind === undefined) throw invalidField('kind', 'Choose the kind of the id.');
  return { environmentId, key: keyOf(environmentId, kind, id), named: { kind, id } };
}

/** Hexadecimal keys of all identities that an id may name. @throws PublicError VALIDATION_ERROR */
export function keysOfId(id: string, environmentId: string, keyOf: IdentityKeyer): string[] {
  assertId('person', id);
  return IDENTITY_KINDS.map((kind) => keyOf(environmentId, kind, id).toString('hex'));
}

/** Keys of an erasure, as in the gateway: a user id is erased in every type and without one. */
export function erasureKeysOf({ environmentId, named }: Subject, keyOf: IdentityKeyer): Buffer[] {
  if (named === null) throw invalidField('id', 'Enter the id itself, not its key, to request an erasure.');
  if (isPlaceholder(named.id))
    throw invalidField('id', 'This is a placeholder that many clients send. Nothing is stored under it.');
  const kinds: readonly IdentityKind[] = named.kind === 'anonymous' ? ['anonymous'] : USER_KINDS;
  return kinds.map((kind) => keyOf(environmentId, kind, named.id));
}
