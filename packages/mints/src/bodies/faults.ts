import { isUtf8 } from 'node:buffer';
import { PublicError } from '@playline/errors';

/** What is wrong with one member, by its path: `assets[3].owner_address`. */
export interface BodyFault {
  readonly field: string;
  readonly message: string;
}

/** More than these help nobody, and a body could have tens of thousands. */
const FAULTS_MAX = 100;

/** Keeps what is wrong with a body, so that all of it is told at once. */
export class BodyFaults {
  readonly #faults: BodyFault[] = [];

  /** @returns null, which stands for a value that is not good */
  add(field: string, rest: string): null {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push({ field, message: `${field} ${rest}` });
    return null;
  }

  /** @throws PublicError VALIDATION_ERROR with everything that is wrong, unless nothing is */
  assertNone(): void {
    const [first, ...others] = this.#faults;
    if (first === undefined) return;
    const message = others.length > 0 ? 'Several members of the body are not valid.' : first.message;
    throw new PublicError('VALIDATION_ERROR', { message, details: { errors: this.#faults } });
  }
}

/** An object of JSON: members are read by name where they are its own. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A member of its own: `constructor` of `{}` is none. Null counts as absent. */
export function memberOf(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** @throws PublicError VALIDATION_ERROR when the bytes are no JSON object in UTF-8 */
export function parseBody(body: Buffer): JsonObject {
  let document: unknown;
  try {
    // Decoding would put U+FFFD in the place of broken bytes and store what nobody sent.
    document = isUtf8(body) ? JSON.parse(body.toString('utf8')) : undefined;
  } catch {
    document = undefined;
  }
  if (document === undefined) throw invalid('The body is not valid UTF-8 JSON.');
  if (!isObject(document)) throw invalid('The body must be a JSON object.');
  return document;
}

const invalid = (message: string) => new PublicError('VALIDATION_ERROR', { message });
