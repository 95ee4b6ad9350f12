import { z } from 'zod';

/** Returns the settings of a service: the schema that its `config.ts` exports. */
export async function readSettings(service: string): Promise<z.ZodObject> {
  const { configSchema } = await import(`../services/${service}/src/config.ts`);
  if (!(configSchema instanceof z.ZodObject)) throw new Error(`services/${service}/src/config.ts: export configSchema`);
  return configSchema;
}
