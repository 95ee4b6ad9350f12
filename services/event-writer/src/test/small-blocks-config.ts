import type { blockWriterSettings } from '@playline/runtime';
import { z } from 'zod';

interface ConfigModule {
  readonly configSchema: z.ZodObject<typeof blockWriterSettings>;
}

const { configSchema: original }: ConfigModule = await import(new URL(import.meta.url).searchParams.get('of') ?? '');

const toUnlimited = (schema: { parse(value: undefined): number }) => z.coerce.number().default(schema.parse(undefined));

/** Replaces the writer's schema, so that blocks may have any size. */
export const configSchema = original.extend({
  BLOCK_ROWS_MAX: toUnlimited(original.shape.BLOCK_ROWS_MAX),
  BLOCK_BYTES_MAX: toUnlimited(original.shape.BLOCK_BYTES_MAX),
  BLOCK_AGE_MAX_MS: toUnlimited(original.shape.BLOCK_AGE_MAX_MS),
});
