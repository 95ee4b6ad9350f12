import {
  ADDRESS_EXPECTED,
  isJsonObject,
  isUint256Text,
  isUuidText,
  parseAddress,
  parseJsonObject,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';

/** A validation error. `field` is a path such as `assets[3].owner_address`. */
interface BodyFault {
  readonly field: string;
  readonly message: string;
}

const FAULTS_MAX = 100;

/** Collects all validation errors in a body. */
export class BodyFaults {
  readonly #faults: BodyFault[] = [];

  add(field: string, rest: string): null {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push({ field, message: `${field} ${rest}` });
    return null;
  }

  /** @throws PublicError VALIDATION_ERROR with all errors */
  assertNone(): void {
    const [first, ...others] = this.#faults;
    if (first === undefined) return;
    const message = others.length > 0 ? 'Several members of the body are invalid. See details.errors.' : first.message;
    throw new PublicError('VALIDATION_ERROR', { message, details: { errors: this.#faults } });
  }
}

/** Use `memberOf` to read members safely. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a member. Ignores inherited members such as `constructor`. Null counts as absent. */
export function memberOf(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** @throws PublicError VALIDATION_ERROR */
export function parseBody(body: Buffer): JsonObject {
  const read = parseJsonObject(body);
  if (read.kind === 'refused') throw new PublicError('VALIDATION_ERROR', read);
  return read.object;
}

export interface Member {
  readonly object: JsonObject;
  readonly name: string;
  /** Path to the object, such as `assets[3].`, or ''. */
  readonly path: string;
}

const UINT256_END = 1n << 256n;
/** Also the limit for identity ids. */
export const REFERENCE_CODE_POINTS_MAX = 256;

const valueIn = ({ object, name }: Member) => memberOf(object, name);
const fieldOf = ({ path, name }: Member) => `${path}${name}`;

/** @returns the address in lower case, or null after adding a validation error */
export function readAddress(member: Member, faults: BodyFaults): string | null {
  const value = valueIn(member);
  const address = typeof value === 'string' ? parseAddress(value) : null;
  return address ?? faults.add(fieldOf(member), `must be ${ADDRESS_EXPECTED}`);
}

export function readReferenceId(member: Member, faults: BodyFaults): string | null {
  const value = valueIn(member);
  if (typeof value === 'string' && isReferenceId(value)) return value;
  return faults.add(fieldOf(member), `must be a string of 1 to ${REFERENCE_CODE_POINTS_MAX} characters, not blank`);
}

/** Requires well-formed strings, because ids that differ only in lone surrogates would be stored as the same id. */
export function isReferenceId(text: string): boolean {
  // Rejects long strings early, because counting code points takes time in proportion to the length.
  if (text.length > 2 * REFERENCE_CODE_POINTS_MAX || text.trim() === '' || !text.isWellFormed()) return false;
  return [...text].length <= REFERENCE_CODE_POINTS_MAX;
}

/** Reads decimal digits below 2^256, or returns null. */
export function readDigits(member: Member, faults: BodyFaults, { min = 0n } = {}): string | null {
  const value = valueIn(member);
  if (value === undefined) return null;
  if (typeof value === 'string' && isUint256Text(value)) {
    const number = BigInt(value);
    if (number >= min && number < UINT256_END) return value;
  }
  return faults.add(fieldOf(member), `must be a string of decimal digits, at least ${min} and below 2^256`);
}

/** Reads a UUID and returns it in lower case. */
export function readUuid(member: Member, faults: BodyFaults): string | null {
  const value = valueIn(member);
  if (typeof value === 'string' && isUuidText(value)) return value.toLowerCase();
  return faults.add(fieldOf(member), 'must be a UUID');
}

/** Reads a string. Lone surrogates become U+FFFD. */
export function readText(member: Member, faults: BodyFaults): string | null {
  const value = valueIn(member);
  if (value === undefined) return null;
  return typeof value === 'string' ? value.toWellFormed() : faults.add(fieldOf(member), 'must be a string or null');
}

/** Requires all keys to be present. Their values may be null. */
export function requireKeys(
  parent: { object: JsonObject; path: string },
  names: readonly string[],
  faults: BodyFaults,
) {
  for (const name of names)
    if (!Object.hasOwn(parent.object, name))
      faults.add(`${parent.path}${name}`, 'is missing. Send null if there is no value.');
}

/** Reads a list of `min` to `max` items, or adds a validation error and returns an empty list. */
export function readList(member: Member, faults: BodyFaults, { min, max }: { min: number; max: number }): unknown[] {
  const value = valueIn(member);
  if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
  faults.add(fieldOf(member), `must be a list of ${min} to ${max} items`);
  return [];
}

export function readItem(item: unknown, path: string, faults: BodyFaults): JsonObject | null {
  return isJsonObject(item) ? item : faults.add(path, 'must be an object');
}
