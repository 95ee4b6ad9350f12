import { ERRORS, type ErrorCode } from '@playline/errors';
import { type DocsSettings, type ExampleAnswer, errorPath, KEY_OF, keyHeadersOf } from '../operation.ts';

/** What examples are written with. */
export interface ExampleContext extends DocsSettings {
  /** Epoch milliseconds: events in examples happened then, or they would soon be too old to be taken. */
  readonly nowMs: number;
}

/** Trace of the example in the W3C recommendation "Trace Context". */
export const EXAMPLE_TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/** Headers with a key, and the content type when there is a body. */
export function headersWith(
  context: ExampleContext,
  kind: 'publishable' | 'secret',
  more: Record<string, string> = {},
): Record<string, string> {
  return { [keyHeadersOf(context)[kind]]: KEY_OF[kind], ...more };
}

export const JSON_TYPE = { 'content-type': 'application/json' };

/** Writes bodies as a reader would type them. */
export const toText = (body: unknown): string => JSON.stringify(body, null, 2);

/** The answer with an envelope; without words of its own, the catalogue's. */
export function envelope(
  { publicUrl }: DocsSettings,
  code: ErrorCode,
  { message, details = null }: { message?: string; details?: Record<string, unknown> | null } = {},
): ExampleAnswer {
  const entry = ERRORS[code];
  const wait: Record<string, string> = code === 'TOO_MANY_REQUESTS_ERROR' ? { 'retry-after': '1' } : {};
  return {
    status: entry.status,
    headers: { 'content-type': 'application/json', 'x-trace-id': EXAMPLE_TRACE_ID, ...wait },
    body: {
      message: message ?? entry.message,
      link: publicUrl + errorPath(code),
      trace_id: EXAMPLE_TRACE_ID,
      code,
      details,
    },
  };
}

/** An answer that is no error. */
export function success(
  status: number,
  body: ExampleAnswer['body'],
  headers: Readonly<Record<string, string>> = {},
): ExampleAnswer {
  const type: Record<string, string> = body === null ? {} : { 'content-type': 'application/json' };
  return { status, headers: { ...type, 'x-trace-id': EXAMPLE_TRACE_ID, ...headers }, body };
}
