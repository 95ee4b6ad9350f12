import { blockWriterSettings, deploymentSettings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the event writer, by the names of their environment variables. */
export const configSchema = z.object({
  ...blockWriterSettings,
  CONSUMER_GROUP: deploymentSettings.WRITER_GROUP,
});

export type Config = z.infer<typeof configSchema>;
