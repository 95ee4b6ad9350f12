import { createRequire } from 'node:module';
import type library from '@kafkajs/confluent-schema-registry/dist/api/index.js';
import { createConnectGate, explainConnection, type StoreFetch } from '@playline/stores';
import { type SchemaRegistry, UnregisteredSchemaFault } from '../ports.ts';
import type { BrokerTarget } from './security.ts';

const REQUEST_TIMEOUT_MS = 10_000;

const INCOMPATIBLE = 409;

/** Old and new processes read each other's records, and logs contain records with many schema versions. */
const COMPATIBILITY = 'FULL_TRANSITIVE';

export interface RegistryAddress {
  /** Confluent-compatible address without a trailing slash. */
  readonly url: string;
  /** Defaults to the global `fetch`, without a private certificate authority or a login. */
  readonly fetch?: StoreFetch | undefined;
}

export interface RegistryAdmin {
  /** Returns true if the subject has a version. @throws Error if the registry does not respond */
  hasSubject(subject: string): Promise<boolean>;
  /**
   * Registers an Avro schema for a subject with compatibility FULL_TRANSITIVE. A registered schema keeps its ID.
   * @returns the schema's ID
   * @throws Error that names the subject if the registry rejects the schema, for example as incompatible
   */
  register(subject: string, schema: string): Promise<number>;
  /** Deletes a subject with all its versions. Succeeds if the subject does not exist. */
  remove(subject: string): Promise<void>;
}

/** An unexpected status from the registry, or from another server at its address. */
class RegistryFault extends Error {
  override readonly name = 'RegistryFault';
  readonly status: number;
  readonly reason: string;

  constructor(status: number, request: string, reason: string) {
    super(`The schema registry responded ${status} for ${request}${reason === '' ? '' : `: ${reason}`}`);
    this.status = status;
    this.reason = reason;
  }
}

type ResponseBody = Record<string, unknown>;
type Middleware = NonNullable<Parameters<typeof library.default>[0]['middlewares']>[number];

/**
 * @returns null if the registry reports that the subject, version or schema does not exist
 * @throws RegistryFault even for a 404 from another server, which must not turn records into dead letters
 */
async function exchange(
  { url, fetch: send = fetch }: RegistryAddress,
  { path, method, ...content }: { path: string; method: string; headers?: Record<string, string>; body?: string },
): Promise<ResponseBody | null> {
  const response = await send(url + path, { ...content, method, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  const result = ((await response.json().catch(() => null)) as ResponseBody | null) ?? {};
  if (response.ok) return result;
  if (response.status === 404 && /^404\d\d$/.test(String(result.error_code))) return null;
  const reason = typeof result.message === 'string' ? result.message : '';
  throw new RegistryFault(response.status, `${method} ${path}`, reason);
}

/** Opens the library's client with a custom transport, because its own transport drops error codes. */
function createApi(address: RegistryAddress) {
  const transport: Middleware = () => ({
    async response(_next, _renew, request) {
      const result = await exchange(address, {
        path: request.path(),
        method: request.method().toUpperCase(),
        headers: request.headers() as Record<string, string>,
        body: request.body() as string,
      });
      return { data: () => result } as never;
    },
  });
  // Imported with `require`, because Node and Vitest treat the CommonJS default export differently.
  const require = createRequire(import.meta.url);
  const { default: openApi } = require('@kafkajs/confluent-schema-registry/dist/api/index.js') as typeof library;
  return openApi({ host: address.url, middlewares: [transport] });
}

/** Creates a function that caches results, but neither faults nor null. */
function createCache<V>(read: (key: string) => Promise<V>): (key: string) => Promise<V> {
  const results = new Map<string, Promise<V>>();
  return (key) => {
    const cached = results.get(key);
    if (cached !== undefined) return cached;
    const result = read(key);
    results.set(key, result);
    result.then(
      (value) => value === null && results.delete(key),
      () => results.delete(key),
    );
    return result;
  };
}

/** Connects on the first call. @param options.onFault called with every fault; the next call repeats the request */
export function createSchemaRegistry(options: RegistryAddress & Pick<BrokerTarget, 'onFault'>): SchemaRegistry {
  const { onFault, ...address } = options;
  const gate = createConnectGate('the schema registry');
  const { Schema, Subject } = createApi(address);
  const read = async (request: () => Promise<{ data(): ResponseBody | null }>): Promise<ResponseBody | null> => {
    const refusal = gate.refusalOf(address.url);
    if (refusal !== null) throw refusal;
    try {
      const response = await request();
      gate.settled(address.url, null);
      return response.data();
    } catch (fault) {
      gate.settled(address.url, fault as Error);
      onFault?.(fault);
      throw fault;
    }
  };
  // The library's `getSchema` returns a codec instead of the registered schema.
  const schemas = createCache(async (id) => {
    const result = await read(() => Schema.find({ id }));
    if (result === null) return null;
    if (typeof result.schema === 'string') return result.schema;
    throw new Error(`The schema registry returned no schema for ID ${id}.`);
  });
  const ids = createCache(async (key) => {
    const [subject, schema] = JSON.parse(key) as [string, string];
    const result = await read(() => Subject.registered({ subject, body: { schema, schemaType: 'AVRO' } }));
    const missing = `${subject}: the schema that this release writes is not registered`;
    if (result === null) throw new UnregisteredSchemaFault(`${missing}; deploy its topics and schemas first`);
    if (typeof result.id === 'number') return result.id;
    throw new Error(`The schema registry returned no ID for ${subject}.`);
  });
  return { idOf: (subject, schema) => ids(JSON.stringify([subject, schema])), schemaOf: (id) => schemas(String(id)) };
}

/** Connects on the first call. */
export function createRegistryAdmin({ url, fetch: send = fetch }: RegistryAddress): RegistryAdmin {
  const address: RegistryAddress = { url, fetch: (to, request) => send(to, request).catch(throwExplained) };
  const { Subject } = createApi(address);
  const correctCompatibility = async (subject: string) => {
    const config = (await Subject.config({ subject })).data() as ResponseBody | null;
    if (config?.compatibilityLevel === COMPATIBILITY) return;
    await Subject.updateConfig({ subject, body: { compatibility: COMPATIBILITY } });
  };
  return {
    hasSubject: async (subject) => (await Subject.latestVersion({ subject })).data() !== null,
    async register(subject, schema) {
      // Set before the schema is registered, so that the first change is checked.
      await correctCompatibility(subject);
      const body = { schema, schemaType: 'AVRO' };
      const response = await Subject.register({ subject, body }).catch((fault: unknown) => {
        throw fault instanceof RegistryFault && fault.status === INCOMPATIBLE
          ? toIncompatibleSchemaError(subject, fault)
          : fault;
      });
      const result = response.data() as ResponseBody | null;
      if (typeof result?.id !== 'number') throw new Error(`The schema registry returned no ID for ${subject}.`);
      // Repeated for registries that store settings only for existing subjects.
      await correctCompatibility(subject);
      return result.id;
    },
    async remove(subject) {
      await exchange(address, { path: `/subjects/${encodeURIComponent(subject)}`, method: 'DELETE' });
    },
  };
}

function toIncompatibleSchemaError(subject: string, { reason }: RegistryFault): Error {
  return new Error(
    `schema registry: ${subject}: this schema cannot be rolled out because releases could not read each other's ` +
      `records (${COMPATIBILITY}). Add only fields with a default, and remove only such fields. Any other change needs ` +
      `a new topic. The registry reports: ${reason}`,
  );
}

/** Explains rejected connections and logins to the operator who deploys schemas. */
function throwExplained(fault: unknown): never {
  const { message, isRefusal } = explainConnection('the schema registry', fault);
  throw isRefusal ? fault : new Error(message, { cause: fault });
}
