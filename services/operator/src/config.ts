import { settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the operator's commands; a command that needs Redis says so when REDIS_URL is absent. */
export const configSchema = z.object({
  REDIS_URL: settings.url().optional(),
  ACCESS_KEY_PREFIX: settings.text().default('svcapik'),
  HTTP_HEADER_PREFIX: settings.text().default('x-service'),
});

export type OperatorConfig = z.infer<typeof configSchema>;
