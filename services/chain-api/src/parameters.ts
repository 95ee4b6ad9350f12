import { isAddressText } from '@playline/chain';
import { PublicError } from '@playline/errors';
import type { Query } from '@playline/http';

/** What is wrong with one parameter. */
export interface ParameterFault {
  readonly field: string;
  readonly message: string;
}

/** The answer to a request with parameters that are wrong: `details.errors` has each of them. */
export function invalidParameters(errors: readonly ParameterFault[]): PublicError {
  const [first, ...others] = errors;
  const message = first === undefined || others.length > 0 ? 'Several parameters are not valid.' : first.message;
  return new PublicError('VALIDATION_ERROR', { message, details: { errors } });
}

/** What a parameter must be, and how it is read. */
export interface Kind<T> {
  /** Ends the sentence "page_size must be …". */
  readonly expected: string;
  /** Null for what is not expected. */
  readonly parse: (text: string) => T | null;
}

/** Reads the parameters of one query and keeps what is wrong with them. */
export interface Parameters {
  readonly faults: readonly ParameterFault[];
  /** The value of a parameter; null when it is absent, and when it is wrong, which is then among the faults. */
  read<T>(name: string, kind: Kind<T>): T | null;
  /** As `read`, of a parameter with two names; given under both, which one is meant cannot be known. */
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

/** An address of a contract, read in any case and kept in lower case. */
export const ADDRESS: Kind<string> = {
  expected: '0x and 40 hexadecimal digits',
  parse: (text) => (isAddressText(text) ? text.toLowerCase() : null),
};

/** Contract, "Parameters of a history"; of the list of mint requests as well. */
const PAGE_SIZE_MAX = 200;
export const PAGE_SIZE = 100;

export const PAGE_SIZE_KIND: Kind<number> = {
  expected: `a whole number from 1 to ${PAGE_SIZE_MAX}`,
  parse: (text) => (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= PAGE_SIZE_MAX ? Number(text) : null),
};
