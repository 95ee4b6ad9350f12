import { ID_CODE_POINTS_MAX, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { type IdentityKeyer, isPlaceholder, USER_KINDS } from '@playline/people';
import type { FormValues } from '../../frame/page.ts';

/** An identity that a person may have. `kind` and `id` are null if only the key is known. */
export interface Subject {
  readonly key: Buffer;
  readonly kind: IdentityKind | null;
  readonly id: string | null;
}

export const SUBJECT_CHOICES = [
  { value: 'any', text: 'any type' },
  { value: 'anonymous', text: 'anonymous id' },
  { value: 'untyped', text: 'user id without a type' },
  ...IDENTITY_KINDS.filter((kind) => kind !== 'anonymous' && kind !== 'untyped').map((value) => ({
    value,
    text: `user id with type ${value}`,
  })),
  { value: 'key', text: 'identity key' },
];

const KEY = /^[0-9a-f]{32}$/i;

export function parseKey(text: string): Buffer | null {
  const key = KEY.test(text) ? Buffer.from(text, 'hex') : ZERO_KEY;
  return key.equals(ZERO_KEY) ? null : key;
}

export const findKind = (text: string): IdentityKind | null => IDENTITY_KINDS.find((each) => each === text) ?? null;

/** @throws PublicError VALIDATION_ERROR, whose message does not contain the id */
function assertId(field: string, id: string): void {
  if (id === '') throw invalidField(field, 'Enter a person’s id.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField(field, `An id can have at most ${ID_CODE_POINTS_MAX} characters.`);
}

type KeyOf = (kind: IdentityKind, id: string) => Buffer;

const toSubjects = (kinds: readonly IdentityKind[], id: string, keyOf: KeyOf): Subject[] =>
  kinds.map((kind) => ({ key: keyOf(kind, id), kind, id }));

/**
 * Returns the identities that a search may mean.
 * @throws PublicError VALIDATION_ERROR, whose message does not contain the id
 */
export function readSubjects(values: FormValues, keyOf: KeyOf): Subject[] {
  const [choice, id] = [values.text('kind'), values.text('id')];
  assertId('id', id);
  const key = parseKey(id);
  if (choice === 'key' && key === null)
    throw invalidField('id', 'An identity key has 32 hexadecimal digits, not all zeros.');
  const ofKey = key === null ? [] : [{ key, kind: null, id: null }];
  if (choice === 'key') return ofKey;
  if (choice === 'any') return [...toSubjects(IDENTITY_KINDS, id, keyOf), ...ofKey];
  const kind = findKind(choice);
  if (kind === null) throw invalidField('kind', 'Choose an id type.');
  return toSubjects([kind], id, keyOf);
}

const capitalise = (text: string) => text.replace(/(^|[@. _-])(\p{Ll})/gu, (letters) => letters.toUpperCase());

/** Returns ids that people confuse with this id: of another type, in another case, with spaces or in another encoding. */
export function listNearSubjects(id: string, keyOf: KeyOf): Subject[] {
  const texts = [
    ...[id, id.toLowerCase(), id.toUpperCase(), capitalise(id), id.charAt(0).toUpperCase() + id.slice(1)],
    ...[` ${id}`, `${id} `, id.normalize('NFC'), id.normalize('NFD')],
  ];
  return [...new Set(texts)].flatMap((text) => toSubjects(IDENTITY_KINDS, text, keyOf));
}

export function toIdentityKeys(id: string, environmentId: string, keyOf: IdentityKeyer): string[] {
  assertId('person', id);
  return IDENTITY_KINDS.map((kind) => keyOf(environmentId, kind, id).toString('hex'));
}

/** Returns the keys to erase. As in the gateway, a user id is erased under every identity type and without a type. */
export function toErasureKeys(kind: IdentityKind, id: string, keyOf: KeyOf): Buffer[] {
  assertId('confirm', id);
  if (isPlaceholder(id))
    throw invalidField('id', 'This id is a placeholder that many clients send. No data is stored for it.');
  const kinds: readonly IdentityKind[] = kind === 'anonymous' ? ['anonymous'] : USER_KINDS;
  return kinds.map((each) => keyOf(each, id));
}
