import { ADDRESS_EXPECTED, parseAddress } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { Query } from '@playline/http';

export interface ParameterError {
  readonly field: string;
  readonly message: string;
}

/** Creates an error that lists all invalid parameters in `details.errors`. */
export function createParameterError(errors: readonly ParameterError[]): PublicError {
  const [first, ...others] = errors;
  const message = first === undefined || others.length > 0 ? 'Several parameters are invalid.' : first.message;
  return new PublicError('VALIDATION_ERROR', { message, details: { errors } });
}

export interface ParamType<T> {
  /** Completes the sentence "page_size must be …". */
  readonly expected: string;
  /** Returns null for an invalid value. */
  readonly parse: (text: string) => T | null;
}

export interface Parameters {
  readonly errors: readonly ParameterError[];
  /** Returns null if the parameter is absent or invalid. An invalid parameter adds an error. */
  read<T>(name: string, type: ParamType<T>): T | null;
  /** Reads a parameter that has two names. Sending both names is an error. */
  readEither<T>(names: readonly [string, string], type: ParamType<T>): T | null;
}

export function createParameters(query: Query): Parameters {
  const errors: ParameterError[] = [];
  const fail = (field: string, message: string) => {
    errors.push({ field, message });
    return null;
  };
  const read: Parameters['read'] = (name, { parse, expected }) => {
    const [text, ...others] = query.get(name) ?? [];
    if (text === undefined) return null;
    if (others.length > 0) return fail(name, `${name} must not be repeated`);
    return parse(text) ?? fail(name, `${name} must be ${expected}`);
  };
  return {
    errors,
    read,
    readEither: ([name, alias], type) => {
      if (query.has(name) && query.has(alias)) return fail(name, `Send either ${name} or ${alias}, not both.`);
      return read(query.has(alias) ? alias : name, type);
    },
  };
}

/** An address, parsed to lower case. */
export const ADDRESS: ParamType<string> = { expected: ADDRESS_EXPECTED, parse: parseAddress };

export const PAGE_SIZE_MAX = 200;
export const PAGE_SIZE = 100;

export const PAGE_SIZE_TYPE: ParamType<number> = {
  expected: `a whole number from 1 to ${PAGE_SIZE_MAX}`,
  parse: (text) => (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= PAGE_SIZE_MAX ? Number(text) : null),
};
