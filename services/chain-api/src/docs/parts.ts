import { createRateLimitHeaders, type Parameter, type ResponseSpec, withHeaders } from '@playline/api-docs';
import type { z } from 'zod';
import type { DocsSettings } from './examples.ts';

/** Optional for every operation. */
export const RATE_LIMIT_KEY = 'rateLimit';
/** Required by all operations on collections. */
export const SECRET_KEY = 'secret';

export const secretHeaderOf = ({ headerPrefix }: DocsSettings): string => `${headerPrefix}-api-key`;

const RATE_LIMIT = createRateLimitHeaders('calls', 'Every response except 429 counts as one call.');

/** Adds the `RateLimit` headers. */
export const withLimit = (responses: readonly ResponseSpec[]): ResponseSpec[] => withHeaders(responses, RATE_LIMIT);

export const queryParam = (name: string, description: string, schema: z.ZodType): Parameter => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});
export const pathParam = (name: string, description: string, schema: z.ZodType): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema,
});
