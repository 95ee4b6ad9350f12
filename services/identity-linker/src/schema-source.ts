import type { SchemaSource } from './steps/decode-fact.ts';

/** The registry as far as the linker reads it. */
export interface SchemaTexts {
  schemaOf(id: number): Promise<string>;
}

/** How the registry client words an id that the registry does not know. */
const UNKNOWN_ID = /\b404\b/;

/** Tells an id that is not registered (null) from a registry that cannot be asked (the fault). */
export function createSchemaSource(registry: SchemaTexts): SchemaSource {
  return async (id) => {
    try {
      return await registry.schemaOf(id);
    } catch (fault) {
      if (fault instanceof Error && UNKNOWN_ID.test(fault.message.replace(String(id), ''))) return null;
      throw fault;
    }
  };
}
