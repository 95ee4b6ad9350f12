import type { StoreFetch, StoreRequest } from '@playline/runtime';

/** A registration is a few kilobytes on a local network. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONTENT_TYPE = 'application/vnd.schemaregistry.v1+json';

/** The interface's own status for a subject that does not exist yet, or has no compatibility of its own. */
const NOT_FOUND = 404;

/** The interface's own status for a schema that the subject's compatibility does not allow. */
const REFUSED = 409;

/** Where it is, and how it is asked. */
export interface Registry {
  readonly url: string;
  readonly fetch?: StoreFetch | undefined;
}

/**
 * What every version of a schema must be to every other. While a release is rolled out, processes before it read what
 * its processes write, and the other way round; and a log, its dead letters and a compacted topic hold records of more
 * versions than two.
 */
const COMPATIBILITY = 'FULL_TRANSITIVE';

/** True when the subject has any version. @throws Error when the registry cannot be asked */
export async function isSubjectKnown(registry: Registry, subject: string): Promise<boolean> {
  return (await ask(registry, `/subjects/${encodeURIComponent(subject)}/versions`)) !== null;
}

/**
 * Registers an Avro schema under a subject of compatibility FULL_TRANSITIVE: every version can be read by the processes
 * of every other. A schema that stands already keeps its id, also when it is not the newest.
 * @returns the schema's id
 * @throws Error naming the subject when the registry refuses, for example an incompatible change
 */
export async function registerSchema(registry: Registry, subject: string, schema: string): Promise<number> {
  const path = encodeURIComponent(subject);
  const standing = await ask(registry, `/config/${path}`);
  // Before the schema where it can be: so that the first change is judged by the right rule.
  if (standing?.compatibilityLevel !== COMPATIBILITY) await setCompatibility(registry, path);
  const answer = await ask(registry, `/subjects/${path}/versions`, {
    method: 'POST',
    body: { schema, schemaType: 'AVRO' },
  });
  if (typeof answer?.id !== 'number') throw new Error(`schema registry: ${subject}: no id in its answer`);
  // A registry that keeps settings only for subjects that exist: once more.
  if ((await ask(registry, `/config/${path}`))?.compatibilityLevel !== COMPATIBILITY)
    await setCompatibility(registry, path);
  return answer.id;
}

async function setCompatibility(registry: Registry, path: string): Promise<void> {
  await ask(registry, `/config/${path}`, { method: 'PUT', body: { compatibility: COMPATIBILITY } });
}

type Answer = { id?: unknown; compatibilityLevel?: unknown; message?: unknown };

/** Asks with GET unless there is a `change` to make. @returns null for 404 */
async function ask(
  registry: Registry,
  path: string,
  change?: { method: string; body: object },
): Promise<Answer | null> {
  const request: StoreRequest = {
    headers: { accept: CONTENT_TYPE, ...(change === undefined ? {} : { 'content-type': CONTENT_TYPE }) },
    ...(change === undefined ? {} : { method: change.method, body: JSON.stringify(change.body) }),
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  };
  const response = await (registry.fetch ?? fetch)(registry.url + path, request);
  const answer = (await response.json().catch(() => ({}))) as Answer;
  if (response.ok) return answer;
  if (response.status === NOT_FOUND) return null;
  if (response.status === REFUSED)
    throw new Error(
      `schema registry: ${decodeURIComponent(path.split('/')[2]!)}: this schema cannot be rolled out: processes of other ` +
        `releases could not read its records, or its processes not theirs (${COMPATIBILITY}). Only add fields with a ` +
        'default, and remove only fields that have one; any other change needs a topic of its own. ' +
        `The registry says: ${String(answer.message ?? '')}`,
    );
  const fault = new Error(`schema registry: ${path}: ${response.status} ${String(answer.message ?? '')}`.trimEnd());
  throw Object.assign(fault, { status: response.status });
}
