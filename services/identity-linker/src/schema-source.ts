import { UnknownSchemaFault } from '@playline/stream';
import type { SchemaSource } from './steps/decode-fact.ts';

/** The registry as far as the linker reads it. */
export interface SchemaTexts {
  schemaOf(id: number): Promise<string>;
}

/** Tells an id that is not registered (null) from a registry that cannot be asked (the fault). */
export function createSchemaSource(registry: SchemaTexts): SchemaSource {
  return async (id) => {
    try {
      return await registry.schemaOf(id);
    } catch (fault) {
      if (fault instanceof UnknownSchemaFault) return null;
      throw fault;
    }
  };
}
