import { ERRORS, type ErrorCode } from '@playline/errors';
import { type AnswerSpec, type ExampleAnswer, errorPath, type HeaderSpec } from './operation.ts';

const TRACE: HeaderSpec = {
  name: 'x-trace-id',
  description: 'Trace id of the request: that of a valid `traceparent`, else a new one. Tell it to the operator.',
  schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
};

/** The header of answers that ask the caller to wait. */
export const RETRY_AFTER: HeaderSpec = {
  name: 'Retry-After',
  description: 'Whole seconds until the same request may be sent again.',
  schema: { type: 'integer', minimum: 1 },
};

/** What an answer may have besides its status and description. */
export type AnswerOptions = Partial<Pick<AnswerSpec, 'schema' | 'narrowed' | 'codes' | 'headers'>>;

/** Creates an answer. Like every answer it carries its trace id. */
export function createAnswer(status: number, description: string, rest: AnswerOptions = {}): AnswerSpec {
  const { schema = null, narrowed = null, codes = [], headers = [] } = rest;
  return { status, description, schema, narrowed, codes, headers: [TRACE, ...headers] };
}

/**
 * Creates the header fields of the IETF draft "RateLimit header fields for HTTP".
 * @param units what is counted, in the plural
 * @param cost a sentence about the cost of a request
 */
export function createRateLimitHeaders(units: string, cost: string): HeaderSpec[] {
  return [
    {
      name: 'RateLimit-Policy',
      description: `The limit that applies: \`q\` ${units} in \`w\` seconds. ${cost}`,
      schema: { type: 'string', pattern: ';q=\\d+;w=\\d+' },
    },
    {
      name: 'RateLimit',
      description: `What is left of it: \`r\` ${units}; all of them again in \`t\` seconds.`,
      schema: { type: 'string', pattern: ';r=\\d+' },
    },
  ];
}

/** The answers with further header fields, which all of them have. */
export const withHeaders = (answers: readonly AnswerSpec[], headers: readonly HeaderSpec[]): AnswerSpec[] =>
  answers.map((spec) => ({ ...spec, headers: [...spec.headers, ...headers] }));

/** Trace of the example in the W3C recommendation "Trace Context". */
export const EXAMPLE_TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

export const JSON_TYPE = { 'content-type': 'application/json' };

/** Formats a body as a reader would type it. */
export const toText = (body: unknown): string => JSON.stringify(body, null, 2);

/** What an envelope contains besides its code. */
export interface EnvelopeOptions {
  /** Without it the catalogue's message is used. */
  message?: string;
  details?: Record<string, unknown> | null;
  headers?: Readonly<Record<string, string>>;
}

/** The answer with an envelope. */
export function envelope(
  { publicUrl }: { readonly publicUrl: string },
  code: ErrorCode,
  { message, details = null, headers = {} }: EnvelopeOptions = {},
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
