import { type AnswerSpec, createRateLimitHeaders, type Parameter, withHeaders } from '@playline/api-docs';
import type { z } from 'zod';
import type { DocsSettings } from './examples.ts';

/** No operation requires the first; all operations on collections require the second. */
export const RATE_LIMIT_KEY = 'rateLimit';
export const SECRET_KEY = 'secret';

export const secretHeaderOf = ({ headerPrefix }: DocsSettings): string => `${headerPrefix}-api-key`;

const RATE_LIMIT = createRateLimitHeaders('calls', 'Every answer but a refusal counts as one call.');

/** With the header fields of the caller's rate limit. */
export const withLimit = (answers: readonly AnswerSpec[]): AnswerSpec[] => withHeaders(answers, RATE_LIMIT);

export const inQuery = (name: string, description: string, schema: z.ZodType): Parameter => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});
export const inPath = (name: string, description: string, schema: z.ZodType): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema,
});
