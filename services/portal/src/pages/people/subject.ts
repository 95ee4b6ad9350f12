import { ID_CODE_POINTS_MAX, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { type IdentityKeyer, isPlaceholder, USER_KINDS } from '@playline/people';
import type { FormValues } from '../../frame/page.ts';

export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null if the person was found by identity key. */
  readonly named: { readonly kind: IdentityKind; readonly id: string } | null;
}

export const SUBJECT_CHOICES = [
  { value: 'anonymous', text: 'anonymous id' },
  { value: 'untyped', text: 'user id without a type' },
  ...IDENTITY_KINDS.filter((kind) => kind !== 'anonymous' && kind !== 'untyped').map((value) => ({
    value,
    text: `user id with type ${value}`,
  })),
  { value: 'key', text: 'identity key' },
];

const KEY = /^[0-9a-f]{32}$/i;

/** @throws PublicError VALIDATION_ERROR, whose message does not contain the id */
function assertId(field: string, id: string): void {
  if (id === '') throw invalidField(field, 'Enter a person’s id.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField(field, `An id can have at most ${ID_CODE_POINTS_MAX} characters.`);
}

/** @throws PublicError VALIDATION_ERROR, whose message does not contain the id */
export function readSubject(values: FormValues, environmentId: string, keyOf: IdentityKeyer): Subject {
  const [kindText, id] = [values.text('kind'), values.text('id')];
  assertId('id', id);
  if (kindText === 'key') {
    const key = KEY.test(id) ? Buffer.from(id, 'hex') : ZERO_KEY;
    if (key.equals(ZERO_KEY)) throw invalidField('id', 'An identity key has 32 hexadecimal digits, not all zeros.');
    return { environmentId, key, named: null };
  }
  const kind = IDENTITY_KINDS.find((each) => each === kindText);
  if (kind === undefined) throw invalidField('kind', 'Choose an id type.');
  return { environmentId, key: keyOf(environmentId, kind, id), named: { kind, id } };
}

export function toIdentityKeys(id: string, environmentId: string, keyOf: IdentityKeyer): string[] {
  assertId('person', id);
  return IDENTITY_KINDS.map((kind) => keyOf(environmentId, kind, id).toString('hex'));
}

/** Returns the keys to erase. As in the gateway, a user id is erased under every identity type and without a type. */
export function toErasureKeys({ environmentId, named }: Subject, keyOf: IdentityKeyer): Buffer[] {
  if (named === null) throw invalidField('id', 'To request an erasure, enter the id, not its identity key.');
  if (isPlaceholder(named.id))
    throw invalidField('id', 'This id is a placeholder that many clients send. No data is stored for it.');
  const kinds: readonly IdentityKind[] = named.kind === 'anonymous' ? ['anonymous'] : USER_KINDS;
  return kinds.map((kind) => keyOf(environmentId, kind, named.id));
}
