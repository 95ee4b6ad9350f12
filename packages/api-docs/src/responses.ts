import { ERRORS, type ErrorCode } from '@playline/errors';
import { type ExampleResponse, errorPath, type HeaderSpec, type ResponseSpec } from './operation.ts';

const TRACE_ID: HeaderSpec = {
  name: 'x-trace-id',
  description:
    'Trace id of the request, taken from a valid `traceparent` or generated. Include it when you report a problem.',
  schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
};

export const RETRY_AFTER: HeaderSpec = {
  name: 'Retry-After',
  description: 'Seconds to wait before retrying the request.',
  schema: { type: 'integer', minimum: 1 },
};

export type ResponseOptions = Partial<Pick<ResponseSpec, 'schema' | 'constraints' | 'codes' | 'headers'>>;

/** Describes a response. Adds the trace id header, which every response contains. */
export function createResponse(status: number, description: string, options: ResponseOptions = {}): ResponseSpec {
  const { schema = null, constraints = null, codes = [], headers = [] } = options;
  return { status, description, schema, constraints, codes, headers: [TRACE_ID, ...headers] };
}

/**
 * The headers of the IETF draft "RateLimit header fields for HTTP".
 * @param units what the limit counts, such as `calls`
 * @param cost a sentence that explains how much a request costs
 */
export function createRateLimitHeaders(units: string, cost: string): HeaderSpec[] {
  return [
    {
      name: 'RateLimit-Policy',
      description: `The current limit: \`q\` ${units} per \`w\` seconds. ${cost}`,
      schema: { type: 'string', pattern: ';q=\\d+;w=\\d+' },
    },
    {
      name: 'RateLimit',
      description: `\`r\` ${units} remain. The full limit is available again in \`t\` seconds.`,
      schema: { type: 'string', pattern: ';r=\\d+' },
    },
  ];
}

export const withHeaders = (responses: readonly ResponseSpec[], headers: readonly HeaderSpec[]): ResponseSpec[] =>
  responses.map((spec) => ({ ...spec, headers: [...spec.headers, ...headers] }));

/** Taken from an example in the W3C recommendation "Trace Context". */
export const EXAMPLE_TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

export const JSON_TYPE = { 'content-type': 'application/json' };

export const toText = (body: unknown): string => JSON.stringify(body, null, 2);

/** Creates an error response. The message defaults to the message in the error catalogue. */
export function envelope(
  { publicUrl }: { readonly publicUrl: string },
  code: ErrorCode,
  options: { message?: string; details?: Record<string, unknown> | null; headers?: Record<string, string> } = {},
): ExampleResponse {
  const { message, details = null, headers = {} } = options;
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

export function success(
  status: number,
  body: ExampleResponse['body'],
  headers: Readonly<Record<string, string>> = {},
): ExampleResponse {
  const type: Record<string, string> = body === null ? {} : JSON_TYPE;
  return { status, headers: { ...type, 'x-trace-id': EXAMPLE_TRACE_ID, ...headers }, body };
}
