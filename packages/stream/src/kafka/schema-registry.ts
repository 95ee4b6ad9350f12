import { createConnectGate } from '@playline/errors';
import type { StoreFetch, StoreRequest } from '@playline/runtime';
import { type SchemaRegistry, UnregisteredSchemaFault } from '../ports.ts';

/** Long, because the registry is asked only at the start and for unknown ids: slow is better than a failure. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Error codes of the registry for a missing subject, version or schema. */
const NOT_THERE = new Set([40401, 40402, 40403]);

/** Caches answers, but neither faults nor null. */
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

export interface SchemaRegistryOptions {
  /** Confluent-compatible address without a trailing slash. */
  url: string;
  /** The function for requests. Default: `fetch`, without a private certificate authority and without a login. */
  fetch?: StoreFetch;
  /** Called with every fault. The next call asks the registry again. */
  onFault?: (fault: unknown) => void;
}

/** The registry answered with something unexpected. */
class RegistryFault extends Error {
  override readonly name = 'RegistryFault';
  readonly status: number;

  constructor(status: number, what: string) {
    super(`the schema registry answered ${status} for ${what}`);
    this.status = status;
  }
}

type Answer = Record<string, unknown>;

/**
 * Whether a 404 comes from the registry itself. Another server at a wrong URL must not turn records into dead letters.
 */
async function isNotThere(answer: Response): Promise<boolean> {
  if (answer.status !== 404) return false;
  const body = (await answer.json().catch(() => null)) as { error_code?: unknown } | null;
  return NOT_THERE.has(Number(body?.error_code));
}

/** Creates a client of the registry; connects with the first call. */
export function createSchemaRegistry({ url, fetch: ask = fetch, onFault }: SchemaRegistryOptions): SchemaRegistry {
  const gate = createConnectGate('the schema registry');
  /** @returns null when the registry says that it does not exist */
  const read = async (path: string, what: string, request: StoreRequest = {}): Promise<Answer | null> => {
    const refusal = gate.refusalOf(url);
    if (refusal !== null) throw refusal;
    try {
      const answer = await ask(url + path, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
      if (await isNotThere(answer)) return null;
      if (!answer.ok) throw new RegistryFault(answer.status, what);
      gate.settled(url, null);
      return (await answer.json()) as Answer;
    } catch (fault) {
      gate.settled(url, fault as Error);
      onFault?.(fault);
      throw fault;
    }
  };
  const readText = async (id: string) => {
    const body = await read(`/schemas/ids/${id}`, `schema ${id}`);
    if (body === null || typeof body.schema === 'string') return (body?.schema as string | undefined) ?? null;
    throw new Error(`the schema registry gave no schema for id ${id}`);
  };
  const readId = async (key: string) => {
    const [subject, schema] = JSON.parse(key) as [string, string];
    const body = await read(`/subjects/${encodeURIComponent(subject)}`, subject, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      body: JSON.stringify({ schema, schemaType: 'AVRO' }),
    });
    if (body === null)
      throw new UnregisteredSchemaFault(
        `${subject}: the schema that this release writes is not registered; deploy its topics and schemas first`,
      );
    if (typeof body.id === 'number') return body.id;
    throw new Error(`the schema registry gave no id for ${subject}`);
  };
  const [texts, ids] = [createCache(readText), createCache(readId)];
  return {
    idOf: (subject, schema) => ids(JSON.stringify([subject, schema])),
    schemaOf: (id) => texts(String(id)),
  };
}
