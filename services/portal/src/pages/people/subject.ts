import { ID_CODE_POINTS_MAX, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { type IdentityKeyer, isPlaceholder, USER_KINDS } from '@playline/people';
import type { FormValues } from '../../frame/page.ts';

/** Whom a form names. */
export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null where it was named by its key, which does not tell. */
  readonly named: { readonly kind: IdentityKind; readonly id: string } | null;
}

/** A kind of identity, or `key`: the keyed hash that this page and tables show. */
export const SUBJECT_CHOICES = [
  { value: 'anonymous', text: 'anonymous id' },
  { value: 'untyped', text: 'user id without a type' },
  ...IDENTITY_KINDS.filter((kind) => kind !== 'anonymous' && kind !== 'untyped').map((value) => ({
    value,
    text: `user id of type ${value}`,
  })),
  { value: 'key', text: 'identity key, as pages show it' },
];

const KEY = /^[0-9a-f]{32}$/i;

/** @throws PublicError VALIDATION_ERROR, without the id */
export function subjectOf(values: FormValues, environmentId: string, keyOf: IdentityKeyer): Subject {
  const [given, id] = [values.text('kind'), values.text('id')];
  if (id === '') throw invalidField('id', 'Type the id of whom you look for.');
  if (given === 'key') {
    const key = KEY.test(id) ? Buffer.from(id, 'hex') : ZERO_KEY;
    if (key.equals(ZERO_KEY)) throw invalidField('id', 'An identity key has 32 hexadecimal digits, not all of them 0.');
    return { environmentId, key, named: null };
  }
  const kind = IDENTITY_KINDS.find((each) => each === given);
  if (kind === undefined) throw invalidField('kind', 'Choose what kind of id it is.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField('id', `An id has at most ${ID_CODE_POINTS_MAX} characters.`);
  return { environmentId, key: keyOf(environmentId, kind, id), named: { kind, id } };
}

/** Keys of everybody whom an id may name: a visitor, or a user in each type and without one. @throws PublicError VALIDATION_ERROR */
export function keysOfId(id: string, environmentId: string, keyOf: IdentityKeyer): string[] {
  if (id === '') throw invalidField('person', 'Type the id of whom you look for.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField('person', `An id has at most ${ID_CODE_POINTS_MAX} characters.`);
  return IDENTITY_KINDS.map((kind) => keyOf(environmentId, kind, id).toString('hex'));
}

/** Keys that an erasure of this id is about, as the gateway takes it: a user id is meant in every type and untyped. */
export function erasureKeysOf({ environmentId, named }: Subject, keyOf: IdentityKeyer): Buffer[] {
  if (named === null) throw invalidField('id', 'An erasure is asked for by the id itself, not by its key.');
  if (isPlaceholder(named.id))
    throw invalidField(
      'id',
      'This is a placeholder that many clients send, not the id of a person. Nothing is stored under it.',
    );
  const kinds: readonly IdentityKind[] = named.kind === 'anonymous' ? ['anonymous'] : USER_KINDS;
  return kinds.map((kind) => keyOf(environmentId, kind, named.id));
}
