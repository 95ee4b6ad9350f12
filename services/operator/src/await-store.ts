import { setTimeout as delay } from 'node:timers/promises';
import { schemaSubjectOf } from '@playline/contracts';
import { type QueryRows, readRows } from '@playline/stores';
import { type LogReader, type Producer, type SchemaRegistry, UnregisteredSchemaFault } from '@playline/stream';
import { UnreachableError } from './command.ts';

/** Long enough for a local store that is starting. */
const READY_MAX_MS = 10_000;
const POLL_MS = 50;

/**
 * Polls `probe` until a store responds, and returns the result.
 * @param probe returns false or rejects while the store does not respond
 * @throws UnreachableError after 10 s
 */
export async function awaitStore<T>(name: string, probe: () => Promise<T | false>): Promise<T> {
  const endAt = performance.now() + READY_MAX_MS;
  for (;;) {
    const result = await probe().catch(() => false as const);
    if (result !== false) return result;
    if (performance.now() > endAt)
      throw new UnreachableError(`${name} does not respond: start it (npm run up), or correct its address`);
    await delay(POLL_MS);
  }
}

/** Waits until the brokers respond. @throws UnreachableError */
export const awaitLog = (log: Pick<LogReader, 'bounds'>): Promise<true> =>
  awaitStore('Kafka', async () => (await log.bounds('')).length === 0);

/** @throws UnreachableError when ClickHouse does not respond */
export const awaitClickHouse = (query: QueryRows): Promise<true> =>
  awaitStore('ClickHouse', async () => (await readRows(query('SELECT 1'))).length === 1);

interface Closeable {
  close(): Promise<void>;
}

/** Runs `work`, after `awaitReady` if set, and then closes `opened`. */
export async function withOpened<S extends Closeable, T>(
  opened: S,
  work: (opened: S) => Promise<T>,
  awaitReady?: (opened: S) => Promise<unknown>,
): Promise<T> {
  try {
    await awaitReady?.(opened);
    return await work(opened);
  } finally {
    await opened.close();
  }
}

/** Creates a function that opens stores, and a function that closes all of them. */
export function createScope() {
  const opened: Closeable[] = [];
  return {
    async open<S extends Closeable>(opening: Promise<S>): Promise<S> {
      const store = await opening;
      opened.push(store);
      return store;
    },
    close: async () => void (await Promise.all(opened.map((store) => store.close()))),
  };
}

/** Runs `work` with a function that opens stores, and then closes all opened stores, even if one fails to open. */
export async function withScope<T>(work: (open: ReturnType<typeof createScope>['open']) => Promise<T>): Promise<T> {
  const { open, close } = createScope();
  return work(open).finally(close);
}

/** Runs `work` once the store is ready, and then closes the store. @throws UnreachableError */
export const withStore = <S extends Closeable & { ready(): Promise<boolean> }, T>(
  name: string,
  store: S,
  work: (store: S) => Promise<T>,
): Promise<T> => withOpened(store, work, () => awaitStore(name, () => store.ready()));

/** Runs `work` once the brokers respond, and then closes the log. @throws UnreachableError */
export const withLog = <T>(log: LogReader, work: (log: LogReader) => Promise<T>): Promise<T> =>
  withOpened(log, work, awaitLog);

/** Returns the result of `find`, or null if the store's address is not configured. */
export async function nullIfUnreachable<T>(find: () => T | Promise<T>): Promise<T | null> {
  try {
    return await find();
  } catch (fault) {
    if (fault instanceof UnreachableError) return null;
    throw fault;
  }
}

export type Schemas = SchemaRegistry;

/**
 * Returns the id of a topic's schema once the registry responds.
 * @param topic full name on the broker
 * @throws UnreachableError when the registry does not respond, or the schema is not registered
 */
export async function awaitSchemaId(schemas: Pick<Schemas, 'idOf'>, topic: string, schema: string): Promise<number> {
  const readId = () => schemas.idOf(schemaSubjectOf(topic), schema).catch(toUnreachable);
  // An error response also shows that the registry is running.
  await awaitStore('the schema registry', () =>
    readId().then(
      () => true,
      (fault: unknown) => fault instanceof UnreachableError,
    ),
  );
  return readId();
}

/** Returns the id of a topic's schema once the brokers and the registry respond. @throws UnreachableError */
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
