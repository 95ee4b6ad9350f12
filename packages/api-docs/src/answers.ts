import type { AnswerSpec, HeaderSpec } from './operation.ts';

const TRACE: HeaderSpec = {
  name: 'x-trace-id',
  description: 'Trace id of the request: that of a valid `traceparent`, else a new one. Tell it to the operator.',
  schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
};

/** Of answers that ask the caller to wait. */
export const RETRY_AFTER: HeaderSpec = {
  name: 'Retry-After',
  description: 'Whole seconds until the same request may be sent again.',
  schema: { type: 'integer', minimum: 1 },
};

/** What an answer has beyond a status and words. */
export type AnswerRest = Partial<Pick<AnswerSpec, 'schema' | 'narrowed' | 'codes' | 'headers'>>;

/** An answer, which carries its trace id as all do. */
export function createAnswer(status: number, description: string, rest: AnswerRest = {}): AnswerSpec {
  const { schema = null, narrowed = null, codes = [], headers = [] } = rest;
  return { status, description, schema, narrowed, codes, headers: [TRACE, ...headers] };
}
