import { blockWriterSettings, GROUPS, redisSettings, settings } from '@playline/runtime';
import { z } from 'zod';

export const configSchema = z.object({
  ...blockWriterSettings,
  ...redisSettings,
  CONSUMER_GROUP: settings.text().default(GROUPS.activityWriter),
});

export type Config = z.infer<typeof configSchema>;
