import { ID_CODE_POINTS_MAX, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import type { IdentityKeyer } from '@playline/people';
import type { FormValues } from '../../frame/page.ts';

/** An identity that a search may mean. `kind` is null and `id` is the key if the key was entered. */
export interface Subject {
  readonly key: Buffer;
  readonly kind: IdentityKind | null;
  readonly id: string;
}

const TEXTS: Readonly<Record<string, string>> = {
  any: 'any type',
  anonymous: 'anonymous id',
  untyped: 'user id without a type',
  key: 'identity key',
};
export const SUBJECT_CHOICES = ['any', ...IDENTITY_KINDS, 'key'].map((value) => {
  return { value, text: TEXTS[value] ?? `user id with type ${value}` };
});

export function parseKey(text: string): Buffer | null {
  const key = /^[0-9a-f]{32}$/i.test(text) ? Buffer.from(text, 'hex') : ZERO_KEY;
  return key.equals(ZERO_KEY) ? null : key;
}

/** @throws PublicError VALIDATION_ERROR, whose message does not contain the id */
function assertId(field: string, id: string): void {
  if (id === '') throw invalidField(field, 'Enter a person’s id.');
  if (!id.isWellFormed() || [...id].length > ID_CODE_POINTS_MAX)
    throw invalidField(field, `An id can have at most ${ID_CODE_POINTS_MAX} characters.`);
}

export type KeyOf = (kind: IdentityKind, id: string) => Buffer;

export const toSubjects = (id: string, keyOf: KeyOf, kinds: readonly IdentityKind[] = IDENTITY_KINDS) =>
  kinds.map((kind) => ({ key: keyOf(kind, id), kind, id }));

/** @throws PublicError VALIDATION_ERROR, whose message does not contain the id */
export function readSubjects(values: FormValues, keyOf: KeyOf): Subject[] {
  const [choice, id] = [values.text('kind'), values.text('id')];
  assertId('id', id);
  const key = parseKey(id);
  const ofKey = key === null ? [] : [{ key, kind: null, id }];
  if (choice === 'any') return [...toSubjects(id, keyOf), ...ofKey];
  if (choice === 'key' && key === null)
    throw invalidField('id', 'An identity key has 32 hexadecimal digits, not all zeros.');
  const kinds = IDENTITY_KINDS.filter((kind) => kind === choice);
  if (kinds.length === 0 && choice !== 'key') throw invalidField('kind', 'Choose an id type.');
  return choice === 'key' ? ofKey : toSubjects(id, keyOf, kinds);
}

export function toIdentityKeys(id: string, environmentId: string, keyOf: IdentityKeyer): string[] {
  assertId('person', id);
  return IDENTITY_KINDS.map((kind) => keyOf(environmentId, kind, id).toString('hex'));
}
