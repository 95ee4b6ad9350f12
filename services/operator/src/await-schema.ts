import { schemaSubjectOf } from '@playline/contracts';
import { type Producer, type SchemaRegistry, UnregisteredSchemaFault } from '@playline/stream';
import { awaitStore } from './await-store.ts';
import { UnreachableError } from './command.ts';

export type Schemas = SchemaRegistry;

/**
 * Waits for the registry, and returns the id of a topic's schema.
 * @param topic full name on the broker
 * @throws UnreachableError when the registry does not answer, or the schema is not registered
 */
export async function awaitSchemaId(schemas: Pick<Schemas, 'idOf'>, topic: string, schema: string): Promise<number> {
  const readId = () => schemas.idOf(schemaSubjectOf(topic), schema).catch(toUnreachable);
  // Any answer shows that the registry is there.
  await awaitStore('the schema registry', () =>
    readId().then(
      () => true,
      (fault: unknown) => fault instanceof UnreachableError,
    ),
  );
  return readId();
}

/** Waits for brokers and registry, and returns the id of a topic's schema. @throws UnreachableError as `awaitSchemaId` */
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

function toUnreachable(fault: unknown): never {
  throw fault instanceof UnregisteredSchemaFault ? new UnreachableError(fault.message) : fault;
}
