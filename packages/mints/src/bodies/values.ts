import { type BodyFaults, isObject, type JsonObject, memberOf } from './faults.ts';

/** A member of a body: where it is found, and what it is called in what is said of it. */
export interface Member {
  readonly object: JsonObject;
  readonly name: string;
  /** Path of the object, `assets[3].`; '' at the top. */
  readonly at: string;
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const DIGITS = /^(0|[1-9]\d{0,77})$/;
const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const UINT256_END = 1n << 256n;
/** As ids of messages and identities. */
const REFERENCE_CODE_POINTS_MAX = 256;

const givenOf = ({ object, name }: Member) => memberOf(object, name);
const fieldOf = ({ at, name }: Member) => `${at}${name}`;

/** An address in lower case; null when it is none, which is then among the faults. */
export function readAddress(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (typeof value === 'string' && ADDRESS.test(value)) return value.toLowerCase();
  return faults.add(fieldOf(member), 'must be 0x and 40 hexadecimal digits');
}

/** A reference id: any text that is not blank and survives being stored. */
export function readReferenceId(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (typeof value === 'string' && isReferenceId(value)) return value;
  return faults.add(fieldOf(member), `must be a text of 1 to ${REFERENCE_CODE_POINTS_MAX} characters, not blank`);
}

/** Two ids that differ only in a half of a character would become one when they are stored. */
export function isReferenceId(text: string): boolean {
  // No text of so many characters is longer, and counting takes as long as the text.
  if (text.length > 2 * REFERENCE_CODE_POINTS_MAX || text.trim() === '' || !text.isWellFormed()) return false;
  return [...text].length <= REFERENCE_CODE_POINTS_MAX;
}

/** Decimal digits below 2^256; null where it is absent or wrong. */
export function readDigits(member: Member, faults: BodyFaults, { min = 0n } = {}): string | null {
  const value = givenOf(member);
  if (value === undefined) return null;
  if (typeof value === 'string' && DIGITS.test(value)) {
    const number = BigInt(value);
    if (number >= min && number < UINT256_END) return value;
  }
  return faults.add(fieldOf(member), `must be a string of decimal digits, from ${min} to below 2^256`);
}

/** A UUID in lower case. */
export function readUuid(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (typeof value === 'string' && UUID.test(value)) return value.toLowerCase();
  return faults.add(fieldOf(member), 'must be a UUID');
}

/** A text, or null where it is absent or wrong. Halves of characters become U+FFFD, as everywhere. */
export function readText(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (value === undefined) return null;
  return typeof value === 'string' ? value.toWellFormed() : faults.add(fieldOf(member), 'must be a string or null');
}

/** Every key must be there, though its value may be null. */
export function requireKeys(given: { object: JsonObject; at: string }, names: readonly string[], faults: BodyFaults) {
  for (const name of names)
    if (!Object.hasOwn(given.object, name)) faults.add(`${given.at}${name}`, 'is missing: null is a value');
}

/** A list with so many items; empty when it is none, which is then among the faults. */
export function readList(member: Member, faults: BodyFaults, { min, max }: { min: number; max: number }): unknown[] {
  const value = givenOf(member);
  if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
  faults.add(fieldOf(member), `must be a list of ${min} to ${max}`);
  return [];
}

/** An object among the items of a list. */
export function readItem(item: unknown, at: string, faults: BodyFaults): JsonObject | null {
  return isObject(item) ? item : faults.add(at, 'must be an object');
}
