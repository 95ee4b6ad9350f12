import type { blockWriterSettings } from '@playline/runtime';
import { z } from 'zod';

interface ConfigModule {
  readonly configSchema: z.ZodObject<typeof blockWriterSettings>;
}

const { configSchema: safe }: ConfigModule = await import(new URL(import.meta.url).searchParams.get('of') ?? '');

const anyNumber = (by: { parse(given: undefined): number }) => z.coerce.number().default(by.parse(undefined));

/** Replaces the writer's schema of the same name, so that blocks may have any size. */
export const configSchema = safe.extend({
  BLOCK_ROWS_MAX: anyNumber(safe.shape.BLOCK_ROWS_MAX),
  BLOCK_BYTES_MAX: anyNumber(safe.shape.BLOCK_BYTES_MAX),
  BLOCK_AGE_MAX_MS: anyNumber(safe.shape.BLOCK_AGE_MAX_MS),
});
