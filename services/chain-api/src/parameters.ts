import { ADDRESS_EXPECTED, parseAddress } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { Query } from '@playline/http';

export interface ParameterFault {
  readonly field: string;
  readonly message: string;
}

/** `details.errors` lists all faults. */
export function invalidParameters(errors: readonly ParameterFault[]): PublicError {
  const [first, ...others] = errors;
  const message = first === undefined || others.length > 0 ? 'Several parameters are not valid.' : first.message;
  return new PublicError('VALIDATION_ERROR', { message, details: { errors } });
}

export interface Kind<T> {
  /** Ends the sentence "page_size must be …". */
  readonly expected: string;
  /** null for an invalid value. */
  readonly parse: (text: string) => T | null;
}

export interface Parameters {
  readonly faults: readonly ParameterFault[];
  /** null when absent or invalid, with a fault. */
  read<T>(name: string, kind: Kind<T>): T | null;
  /** A value under both names is a fault. */
  readEither<T>(names: readonly [string, string], kind: Kind<T>): T | null;
}

export function createParameters(query: Query): Parameters {
  const faults: ParameterFault[] = [];
  const fail = (field: string, message: string) => {
    faults.push({ field, message });
    return null;
  };
  const read: Parameters['read'] = (name, { parse, expected }) => {
    const [text, ...others] = query.get(name) ?? [];
    if (text === undefined) return null;
    if (others.length > 0) return fail(name, `${name} is given more than once`);
    return parse(text) ?? fail(name, `${name} must be ${expected}`);
  };
  return {
    faults,
    read,
    readEither: ([name, other], kind) => {
      if (query.has(name) && query.has(other)) return fail(name, `${name} and ${other} are the same: give one of them`);
      return read(query.has(other) ? other : name, kind);
    },
  };
}

/** Lower case. */
export const ADDRESS: Kind<string> = { expected: ADDRESS_EXPECTED, parse: parseAddress };

/** Also of the list of mint requests. */
export const PAGE_SIZE_MAX = 200;
export const PAGE_SIZE = 100;

export const PAGE_SIZE_KIND: Kind<number> = {
  expected: `a whole number from 1 to ${PAGE_SIZE_MAX}`,
  parse: (text) => (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= PAGE_SIZE_MAX ? Number(text) : null),
};
