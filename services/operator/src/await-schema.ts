import { schemaSubjectOf } from '@playline/contracts';
import { type Producer, type SchemaRegistry, UnregisteredSchemaFault } from '@playline/stream';
import { awaitStore } from './await-store.ts';
import { UnreachableError } from './command.ts';

/** The registry as commands use it. */
export type Schemas = SchemaRegistry;

/**
 * The id of the schema that a topic's values are written with, once the registry answers.
 * @param topic full name on the broker
 * @throws UnreachableError when it does not answer, or the schema is not registered
 */
export async function awaitSchemaId(schemas: Pick<Schemas, 'idOf'>, topic: string, schema: string): Promise<number> {
  const ask = () => schemas.idOf(schemaSubjectOf(topic), schema).catch(toUnreachable);
  // Any answer shows that the registry is there.
  await awaitStore('the schema registry', () =>
    ask().then(
      () => true,
      (fault: unknown) => fault instanceof UnreachableError,
    ),
  );
  return ask();
}

/**
 * The id of the schema of a topic's values, once the topic can be written.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered
 */
export async function awaitWritable(
  { producer, schemas }: { readonly producer: Pick<Producer, 'ready'>; readonly schemas: Pick<Schemas, 'idOf'> },
  topic: string,
  schema: string,
): Promise<number> {
  const [schemaId] = await Promise.all([
    awaitSchemaId(schemas, topic, schema),
    awaitStore('Kafka', () => producer.ready()),
  ]);
  return schemaId;
}

/** @throws UnreachableError for a schema that is not registered; any other fault unchanged */
function toUnreachable(fault: unknown): never {
  throw fault instanceof UnregisteredSchemaFault ? new UnreachableError(fault.message) : fault;
}
