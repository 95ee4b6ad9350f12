import {
  ADDRESS_EXPECTED,
  isJsonObject,
  isUint256Text,
  isUuidText,
  parseAddress,
  parseJsonObject,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';

/** A fault of one member, with its path such as `assets[3].owner_address`. */
interface BodyFault {
  readonly field: string;
  readonly message: string;
}

/** A body could have tens of thousands of faults, more than anybody can use. */
const FAULTS_MAX = 100;

/** Collects the faults of a body, so that all are reported at once. */
export class BodyFaults {
  readonly #faults: BodyFault[] = [];

  /** @returns null, in the place of the bad value */
  add(field: string, rest: string): null {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push({ field, message: `${field} ${rest}` });
    return null;
  }

  /** @throws PublicError VALIDATION_ERROR with all faults, if there are any */
  assertNone(): void {
    const [first, ...others] = this.#faults;
    if (first === undefined) return;
    const message = others.length > 0 ? 'Several members of the body are not valid.' : first.message;
    throw new PublicError('VALIDATION_ERROR', { message, details: { errors: this.#faults } });
  }
}

/** A JSON object. Read its members with `memberOf`. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** An own member; inherited ones such as `constructor` do not count. Null counts as absent. */
export function memberOf(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** @throws PublicError VALIDATION_ERROR when the bytes are no JSON object in UTF-8 */
export function parseBody(body: Buffer): JsonObject {
  const read = parseJsonObject(body);
  if (read.kind === 'refused') throw new PublicError('VALIDATION_ERROR', read);
  return read.object;
}

/** A member of a body: the object that has it, and its path for faults. */
export interface Member {
  readonly object: JsonObject;
  readonly name: string;
  /** Path of the object, `assets[3].`; '' at the top. */
  readonly at: string;
}

const UINT256_END = 1n << 256n;
/** The same as for ids of identities. */
export const REFERENCE_CODE_POINTS_MAX = 256;

const givenOf = ({ object, name }: Member) => memberOf(object, name);
const fieldOf = ({ at, name }: Member) => `${at}${name}`;

/** An address in lower case. Null when it is not one, which is added to the faults. */
export function readAddress(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  const address = typeof value === 'string' ? parseAddress(value) : null;
  return address ?? faults.add(fieldOf(member), `must be ${ADDRESS_EXPECTED}`);
}

/** A reference id: any text that `isReferenceId` accepts. */
export function readReferenceId(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (typeof value === 'string' && isReferenceId(value)) return value;
  return faults.add(fieldOf(member), `must be a text of 1 to ${REFERENCE_CODE_POINTS_MAX} characters, not blank`);
}

/** Must be well-formed: two ids that differ only in half a surrogate pair would be stored as one. */
export function isReferenceId(text: string): boolean {
  // Check the length first: counting code points takes time in proportion to the text.
  if (text.length > 2 * REFERENCE_CODE_POINTS_MAX || text.trim() === '' || !text.isWellFormed()) return false;
  return [...text].length <= REFERENCE_CODE_POINTS_MAX;
}

/** Decimal digits below 2^256; null when absent or wrong. */
export function readDigits(member: Member, faults: BodyFaults, { min = 0n } = {}): string | null {
  const value = givenOf(member);
  if (value === undefined) return null;
  if (typeof value === 'string' && isUint256Text(value)) {
    const number = BigInt(value);
    if (number >= min && number < UINT256_END) return value;
  }
  return faults.add(fieldOf(member), `must be a string of decimal digits, from ${min} to below 2^256`);
}

/** A UUID in lower case. */
export function readUuid(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (typeof value === 'string' && isUuidText(value)) return value.toLowerCase();
  return faults.add(fieldOf(member), 'must be a UUID');
}

/** A text, or null when absent or wrong. Half a surrogate pair becomes U+FFFD. */
export function readText(member: Member, faults: BodyFaults): string | null {
  const value = givenOf(member);
  if (value === undefined) return null;
  return typeof value === 'string' ? value.toWellFormed() : faults.add(fieldOf(member), 'must be a string or null');
}

/** Requires every key. Its value may be null. */
export function requireKeys(given: { object: JsonObject; at: string }, names: readonly string[], faults: BodyFaults) {
  for (const name of names)
    if (!Object.hasOwn(given.object, name)) faults.add(`${given.at}${name}`, 'is missing: null is a value');
}

/** A list of `min` to `max` items. Empty when it is not one, which is added to the faults. */
export function readList(member: Member, faults: BodyFaults, { min, max }: { min: number; max: number }): unknown[] {
  const value = givenOf(member);
  if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
  faults.add(fieldOf(member), `must be a list of ${min} to ${max}`);
  return [];
}

/** An object among the items of a list. */
export function readItem(item: unknown, at: string, faults: BodyFaults): JsonObject | null {
  return isJsonObject(item) ? item : faults.add(at, 'must be an object');
}
