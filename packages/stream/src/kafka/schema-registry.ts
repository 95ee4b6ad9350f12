/** Ids and texts of registered schemas, each asked for once: a registry that is down later does not matter. */
export interface SchemaRegistry {
  /**
   * The id under which exactly this text is registered: never that of a newer version, whose readers would misread what
   * was written by this one. Whoever deploys a release registers its schemas; a process only asks.
   * @throws UnregisteredSchemaFault when it is not registered under the subject; else what the registry or the network
   *   says. Either is asked again next time
   */
  idOf(subject: string, schema: string): Promise<number>;
  /** The schema's text as it was registered; null when the registry has no such id, asked again next time. @throws as `idOf` */
  schemaOf(id: number): Promise<string | null>;
}

/** The registry answered, and this text is not registered under this subject: its release was not deployed there. */
export class UnregisteredSchemaFault extends Error {
  override readonly name = 'UnregisteredSchemaFault';
}

/** A registry is asked at a service's start and when an unknown id turns up: slow is better than failing. */
const REQUEST_TIMEOUT_MS = 5_000;
/** The interface's own status for an id, a subject or a text that is not there. */
const NOT_FOUND = 404;

/** Remembers answers, and neither faults nor null. */
function createCache<V>(ask: (key: string) => Promise<V>): (key: string) => Promise<V> {
  const answers = new Map<string, Promise<V>>();
  return (key) => {
    const known = answers.get(key);
    if (known !== undefined) return known;
    const asked = ask(key);
    answers.set(key, asked);
    asked.then(
      (answer) => answer === null && answers.delete(key),
      () => answers.delete(key),
    );
    return asked;
  };
}

/** @param options.url Confluent-compatible address without a trailing slash */
export function createSchemaRegistry({ url }: { url: string }): SchemaRegistry {
  /** Asks with GET unless there is a `body` to post. @returns null for 404 */
  const ask = async (path: string, body?: object): Promise<Record<string, unknown> | null> => {
    const answer = await fetch(url + path, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    if (answer.status === NOT_FOUND) return null;
    if (!answer.ok) throw new Error(`the schema registry answered ${answer.status} for ${path}`);
    const found: unknown = await answer.json();
    return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {};
  };
  const readText = async (id: string) => {
    const found = await ask(`/schemas/ids/${id}`);
    if (found === null) return null;
    if (typeof found.schema !== 'string') throw new Error(`the schema registry gave no schema for id ${id}`);
    return found.schema;
  };
  const findId = async (key: string) => {
    const [subject, schema] = JSON.parse(key) as [string, string];
    const found = await ask(`/subjects/${encodeURIComponent(subject)}`, { schema, schemaType: 'AVRO' });
    if (found === null)
      throw new UnregisteredSchemaFault(
        `${subject}: the schema that this release writes is not registered; deploy its topics and schemas first`,
      );
    if (typeof found.id !== 'number') throw new Error(`the schema registry gave no id for ${subject}`);
    return found.id;
  };
  const [texts, ids] = [createCache(readText), createCache(findId)];
  return {
    idOf: (subject, schema) => ids(JSON.stringify([subject, schema])),
    schemaOf: (id) => texts(String(id)),
  };
}
