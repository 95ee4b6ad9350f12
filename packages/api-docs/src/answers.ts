import type { AnswerSpec, HeaderSpec } from './operation.ts';

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
export type AnswerRest = Partial<Pick<AnswerSpec, 'schema' | 'narrowed' | 'codes' | 'headers'>>;

/** Creates an answer. Like every answer it carries its trace id. */
export function createAnswer(status: number, description: string, rest: AnswerRest = {}): AnswerSpec {
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
