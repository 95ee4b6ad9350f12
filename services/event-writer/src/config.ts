import { blockWriterSettings, clickhouseClusterSettings, deploymentSettings } from '@playline/runtime';
import { z } from 'zod';

export const configSchema = z.object({
  ...blockWriterSettings,
  ...clickhouseClusterSettings,
  CONSUMER_GROUP: deploymentSettings.WRITER_GROUP,
});

export type Config = z.infer<typeof configSchema>;
