import { createRequire } from 'node:module';
import type library from '@kafkajs/confluent-schema-registry/dist/api/index.js';
import { createConnectGate, explainConnection, type StoreFetch } from '@playline/stores';
import { type SchemaRegistry, UnregisteredSchemaFault } from '../ports.ts';

/** Generous: requests are sent at a start, in a deployment and for unknown ids only, so slow is better than failed. */
const REQUEST_TIMEOUT_MS = 10_000;

/** The registry's status for a schema that the compatibility of its subject does not allow. */
const INCOMPATIBLE = 409;

/**
 * Compatibility between all versions of a schema. During a rollout, old and new processes read each other's records. A
 * log, its dead letters and a compacted topic have records of more than two versions.
 */
const COMPATIBILITY = 'FULL_TRANSITIVE';

export interface RegistryAddress {
  /** Confluent-compatible address without a trailing slash. */
  readonly url: string;
  /** Sends the requests. Default: the global `fetch`, without a private certificate authority and without a login. */
  readonly fetch?: StoreFetch | undefined;
}

export interface SchemaRegistryOptions extends RegistryAddress {
  /** Called with every fault. The next call sends the request again. */
  onFault?: (fault: unknown) => void;
}

/** What a deployment does with subjects. */
export interface RegistryAdmin {
  /** True when the subject has a version. @throws Error when the registry does not answer */
  hasSubject(subject: string): Promise<boolean>;
  /**
   * Registers an Avro schema under a subject of compatibility FULL_TRANSITIVE: processes of every version can read every
   * other version. A schema that is registered already keeps its id, also when it is not the newest.
   * @returns the schema's id
   * @throws Error naming the subject when the registry refuses, for example an incompatible change
   */
  register(subject: string, schema: string): Promise<number>;
  /** Deletes a subject with all versions; succeeds when it does not exist. */
  remove(subject: string): Promise<void>;
}

/** The registry, or another server at its address, answered with an unexpected status. */
class RegistryFault extends Error {
  override readonly name = 'RegistryFault';
  readonly status: number;
  /** The registry's own message; '' without one. */
  readonly reason: string;

  constructor(status: number, request: string, reason: string) {
    super(`the schema registry answered ${status} for ${request}${reason === '' ? '' : `: ${reason}`}`);
    this.status = status;
    this.reason = reason;
  }
}

type Answer = Record<string, unknown>;
type Middleware = NonNullable<Parameters<typeof library.default>[0]['middlewares']>[number];

function parseAnswer(text: string): Answer {
  try {
    return (JSON.parse(text) as Answer | null) ?? {};
  } catch {
    return {};
  }
}

/**
 * Sends one request and reads its answer.
 * @returns null when the registry reports that the subject, version or schema does not exist
 * @throws RegistryFault also for a 404 without an error code of the registry: another server at a wrong URL must not
 * turn records into dead letters
 */
async function exchange(
  { url, fetch: send = fetch }: RegistryAddress,
  { path, method, ...content }: { path: string; method: string; headers?: Record<string, string>; body?: string },
): Promise<Answer | null> {
  const response = await send(url + path, { ...content, method, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  const answer = parseAnswer(await response.text());
  if (response.ok) return answer;
  if (response.status === 404 && /^404\d\d$/.test(String(answer.error_code))) return null;
  const reason = typeof answer.message === 'string' ? answer.message : '';
  throw new RegistryFault(response.status, `${method} ${path}`, reason);
}

/**
 * The library's client of the registry's interface, with our transport as the outermost middleware: the library's own
 * loses the error code of the registry and of the connection, so no fault could be explained.
 */
function createApi(address: RegistryAddress) {
  const transport: Middleware = () => ({
    async response(_next, _renew, request) {
      const answer = await exchange(address, {
        path: request.path(),
        method: request.method().toUpperCase(),
        headers: request.headers() as Record<string, string>,
        body: request.body() as string,
      });
      return { data: () => answer } as never;
    },
  });
  // Loaded when it is used, by `require`: it is CommonJS whose default export Node and Vitest import differently.
  const require = createRequire(import.meta.url);
  const { default: openApi } = require('@kafkajs/confluent-schema-registry/dist/api/index.js') as typeof library;
  return openApi({ host: address.url, middlewares: [transport] });
}

/** Creates a function that remembers answers, but neither faults nor null. */
function createCache<V>(read: (key: string) => Promise<V>): (key: string) => Promise<V> {
  const answers = new Map<string, Promise<V>>();
  return (key) => {
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = read(key);
    answers.set(key, answer);
    answer.then(
      (value) => value === null && answers.delete(key),
      () => answers.delete(key),
    );
    return answer;
  };
}

/** Creates the client of a process that looks schemas up; connects with the first call. */
export function createSchemaRegistry({ onFault, ...address }: SchemaRegistryOptions): SchemaRegistry {
  const gate = createConnectGate('the schema registry');
  const { Schema, Subject } = createApi(address);
  const read = async (request: () => Promise<{ data(): Answer | null }>): Promise<Answer | null> => {
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
  // Not the library's `getSchema`: that returns a codec of its own instead of the registered text.
  const texts = createCache(async (id) => {
    const answer = await read(() => Schema.find({ id }));
    if (answer === null) return null;
    if (typeof answer.schema === 'string') return answer.schema;
    throw new Error(`the schema registry returned no schema for id ${id}`);
  });
  const ids = createCache(async (key) => {
    const [subject, schema] = JSON.parse(key) as [string, string];
    const answer = await read(() => Subject.registered({ subject, body: { schema, schemaType: 'AVRO' } }));
    if (answer === null)
      throw new UnregisteredSchemaFault(
        `${subject}: the schema that this release writes is not registered; deploy its topics and schemas first`,
      );
    if (typeof answer.id === 'number') return answer.id;
    throw new Error(`the schema registry returned no id for ${subject}`);
  });
  return {
    idOf: (subject, schema) => ids(JSON.stringify([subject, schema])),
    schemaOf: (id) => texts(String(id)),
  };
}

/** Creates the client of a deployment; connects with the first call. */
export function createRegistryAdmin({ url, fetch: send = fetch }: RegistryAddress): RegistryAdmin {
  const address: RegistryAddress = { url, fetch: (to, request) => send(to, request).catch(throwExplained) };
  const { Subject } = createApi(address);
  const correctCompatibility = async (subject: string) => {
    const config = (await Subject.config({ subject })).data() as Answer | null;
    if (config?.compatibilityLevel === COMPATIBILITY) return;
    await Subject.updateConfig({ subject, body: { compatibility: COMPATIBILITY } });
  };
  return {
    hasSubject: async (subject) => (await Subject.latestVersion({ subject })).data() !== null,
    async register(subject, schema) {
      // Before the schema where possible, so that the first change is already checked by this rule.
      await correctCompatibility(subject);
      const body = { schema, schemaType: 'AVRO' };
      const response = await Subject.register({ subject, body }).catch((fault: unknown) => {
        throw fault instanceof RegistryFault && fault.status === INCOMPATIBLE ? toRefusal(subject, fault) : fault;
      });
      const answer = response.data() as Answer | null;
      if (typeof answer?.id !== 'number') throw new Error(`the schema registry returned no id for ${subject}`);
      // Again, for registries that keep settings only for existing subjects.
      await correctCompatibility(subject);
      return answer.id;
    },
    async remove(subject) {
      // The library's client has no request for it.
      await exchange(address, { path: `/subjects/${encodeURIComponent(subject)}`, method: 'DELETE' });
    },
  };
}

function toRefusal(subject: string, { reason }: RegistryFault): Error {
  return new Error(
    `schema registry: ${subject}: this schema cannot be rolled out: this release and others could not read each ` +
      `other's records (${COMPATIBILITY}). Only add fields with a default, and remove only fields that have one; any ` +
      `other change needs a topic of its own. The registry reports: ${reason}`,
  );
}

/** Explains why the registry does not answer. The deployment command itself explains refused connections and logins. */
function throwExplained(fault: unknown): never {
  const { message: sentence, isRefusal } = explainConnection('the schema registry', fault);
  throw isRefusal ? fault : new Error(sentence, { cause: fault });
}
