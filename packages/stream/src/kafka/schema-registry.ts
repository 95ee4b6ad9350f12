import { createConnectGate } from '@playline/errors';
import type { StoreFetch } from '@playline/runtime';
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

export interface SchemaRegistryOptions {
  /** Confluent-compatible address without a trailing slash. */
  url: string;
  /** How it is asked: by itself without an authority of its own and without a login. */
  fetch?: StoreFetch;
  /** Told of every fault; the registry is asked again by whoever needs the answer. */
  onFault?: (fault: unknown) => void;
}

/** A registry that answers with something else than what was asked for. */
class RegistryFault extends Error {
  override readonly name = 'RegistryFault';
  readonly status: number;

  constructor(status: number, what: string) {
    super(`the schema registry answered ${status} for ${what}`);
    this.status = status;
  }
}

export function createSchemaRegistry({ url, fetch: ask = fetch, onFault }: SchemaRegistryOptions): SchemaRegistry {
  const gate = createConnectGate('the schema registry');
  const read = async (path: string, what: string): Promise<Record<string, unknown>> => {
    const refusal = gate.refusalOf(url);
    if (refusal !== null) throw refusal;
    try {
      const answer = await ask(url + path, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
      if (!answer.ok) throw new RegistryFault(answer.status, what);
      gate.settled(url, null);
      return (await answer.json()) as Record<string, unknown>;
    } catch (fault) {
      gate.settled(url, fault as Error);
      onFault?.(fault);
      throw fault;
    }
  };
  const readText = async (id: number) => {
    const body = await read(`/schemas/ids/${id}`, `schema ${id}`).catch((fault: unknown) => {
      const isUnknown = fault instanceof RegistryFault && fault.status === 404;
      throw isUnknown ? new UnknownSchemaFault(`the schema registry has no schema ${id}`) : fault;
    });
    if (typeof body.schema === 'string') return body.schema;
    throw new Error(`the schema registry gave no schema for id ${id}`);
  };
  const readId = async (subject: string) => {
    const { id } = await read(`/subjects/${encodeURIComponent(subject)}/versions/latest`, subject);
    if (typeof id === 'number') return id;
    throw new Error(`the schema registry gave no id for ${subject}`);
  };
  return { idOf: createCache(readId), schemaOf: createCache(readText) };
}
