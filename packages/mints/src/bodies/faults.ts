import { parseJsonObject } from '@playline/contracts';
import { PublicError } from '@playline/errors';

/** A fault of one member, with its path such as `assets[3].owner_address`. */
export interface BodyFault {
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
