import { FRAME_BYTES, schemaIdOf } from '@playline/contracts';
import { UnknownSchemaFault } from '@playline/stream';
import type { Flow } from './flows.ts';
import type { ReadFact } from './verify-flow.ts';

type Decoder = ReturnType<Flow['createDecoder']>;

/**
 * Creates the reader of records as they stand in the log, each with the schema it was written with.
 * @param schemaOf the text of a schema; throws UnknownSchemaFault when there is none, any other fault ends the command
 */
export function createReadFact(schemaOf: (id: number) => Promise<string>): ReadFact {
  const decoders = new Map<string, Promise<Decoder | null>>();
  const decoderOf = async (flow: Flow, id: number): Promise<Decoder | null> => {
    let schema: string;
    try {
      schema = await schemaOf(id);
    } catch (error) {
      if (error instanceof UnknownSchemaFault) return null;
      throw error;
    }
    return orNull(() => flow.createDecoder(schema));
  };
  return async (flow, { value }) => {
    const id = value === null ? null : schemaIdOf(value);
    if (value === null || id === null) return null;
    const key = `${flow.topic} ${id}`;
    const asked = decoders.get(key) ?? decoderOf(flow, id);
    decoders.set(key, asked);
    const decode = await asked;
    return decode === null ? null : orNull(() => decode(value.subarray(FRAME_BYTES)));
  };
}

/** What cannot be read is not explained, and so it is reported. */
function orNull<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}
