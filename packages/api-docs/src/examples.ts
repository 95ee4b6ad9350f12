import { ERRORS, type ErrorCode } from '@playline/errors';
import { type ExampleAnswer, errorPath } from './operation.ts';

/** Trace of the example in the W3C recommendation "Trace Context". */
export const EXAMPLE_TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

export const JSON_TYPE = { 'content-type': 'application/json' };

/** Formats a body as a reader would type it. */
export const toText = (body: unknown): string => JSON.stringify(body, null, 2);

/** What an envelope contains besides its code. */
export interface EnvelopeRest {
  /** Without it the catalogue's message is used. */
  message?: string;
  details?: Record<string, unknown> | null;
  headers?: Readonly<Record<string, string>>;
}

/** The answer with an envelope. */
export function envelope(
  { publicUrl }: { readonly publicUrl: string },
  code: ErrorCode,
  { message, details = null, headers = {} }: EnvelopeRest = {},
): ExampleAnswer {
  const entry = ERRORS[code];
  return {
    status: entry.status,
    headers: { ...JSON_TYPE, 'x-trace-id': EXAMPLE_TRACE_ID, ...headers },
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
  const type: Record<string, string> = body === null ? {} : JSON_TYPE;
  return { status, headers: { ...type, 'x-trace-id': EXAMPLE_TRACE_ID, ...headers }, body };
}
