import { SchemaRegistry as RegistryClient } from '@kafkajs/confluent-schema-registry';
import { UnknownSchemaFault } from '../ports.ts';

/** Ids and texts of registered schemas, each asked for once: a registry that is down later does not matter. */
export interface SchemaRegistry {
  /** The latest id registered under a subject. @throws what the registry or the network says; asked again next time */
  idOf(subject: string): Promise<number>;
  /** The schema's text as it was registered. @throws UnknownSchemaFault when there is none; else as `idOf` */
  schemaOf(id: number): Promise<string>;
}

/** A registry is asked at a service's start and when an unknown id turns up: slow is better than failing. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Remembers answers, and never faults. */
function createCache<K, V>(ask: (key: K) => Promise<V>): (key: K) => Promise<V> {
  const answers = new Map<K, Promise<V>>();
  return (key) => {
    const known = answers.get(key);
    if (known !== undefined) return known;
    const asked = ask(key);
    answers.set(key, asked);
    asked.catch(() => answers.delete(key));
    return asked;
  };
}

/** @param options.url Confluent-compatible address without a trailing slash */
export function createSchemaRegistry({ url }: { url: string }): SchemaRegistry {
  const client = new RegistryClient({ host: url, retry: { maxRetryTimeInSecs: REQUEST_TIMEOUT_MS / 1_000 } });
  // The client gives schemas parsed, without what its parser does not know (logical types): the text is asked for here.
  const readText = async (id: number) => {
    const answer = await fetch(`${url}/schemas/ids/${id}`, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
    if (answer.status === 404) throw new UnknownSchemaFault(`the schema registry has no schema ${id}`);
    if (!answer.ok) throw new Error(`the schema registry answered ${answer.status} for schema ${id}`);
    const body: unknown = await answer.json();
    if (typeof body === 'object' && body !== null && 'schema' in body && typeof body.schema === 'string')
      return body.schema;
    throw new Error(`the schema registry gave no schema for id ${id}`);
  };
  return {
    idOf: createCache((subject: string) => client.getLatestSchemaId(subject)),
    schemaOf: createCache(readText),
  };
}
