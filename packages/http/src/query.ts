import { invalidField, PublicError } from '@playline/errors';

/** The values of each parameter, in order. */
export type Query = ReadonlyMap<string, readonly string[]>;

/** RFC 3986: other characters must be percent-encoded. Raw bytes could be read as another id than the caller meant. */
const ASCII = /^[\x21-\x7e]*$/;

/**
 * Reads the query of a request target. `URLSearchParams` is not used: it replaces invalid bytes by U+FFFD, so that
 * different ids would become the same.
 * @throws PublicError VALIDATION_ERROR when it is not valid percent-encoded UTF-8
 */
export function parseQuery(target: string): Query {
  const mark = target.indexOf('?');
  const text = mark === -1 ? '' : target.slice(mark + 1);
  if (!ASCII.test(text)) throw notDecodable();
  const query = new Map<string, string[]>();
  for (const part of text.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = equals === -1 ? '' : decode(part.slice(equals + 1));
    query.set(name, [...(query.get(name) ?? []), value]);
  }
  return query;
}

/**
 * The value of a parameter; undefined when it is absent.
 * @throws PublicError VALIDATION_ERROR when it is given more than once, since it is unclear which one counts
 */
export function singleValueOf(query: Query, name: string): string | undefined {
  const values = query.get(name) ?? [];
  if (values.length > 1) throw invalidField(name, `${name} is given more than once`);
  return values[0];
}

/** As HTML forms are sent: a plus is a space. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    throw notDecodable(cause);
  }
}

function notDecodable(cause?: unknown): PublicError {
  return new PublicError('VALIDATION_ERROR', { message: 'The query is not valid percent-encoded UTF-8.', cause });
}
