import type { StoreFetch, StoreRequest } from '@playline/runtime';

/** A registration is a few kilobytes on a local network. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONTENT_TYPE = 'application/vnd.schemaregistry.v1+json';

/** The interface's own status for a subject that does not exist yet, or has no compatibility of its own. */
const NOT_FOUND = 404;

/** Where it is, and how it is asked. */
export interface Registry {
  readonly url: string;
  readonly fetch?: StoreFetch | undefined;
}

/**
 * Registers an Avro schema under a subject of compatibility BACKWARD (a reader of the new version can read what is in
 * the log already). A schema that stands already keeps its id.
 * @returns the schema's id
 * @throws Error naming the subject when the registry refuses, for example an incompatible change
 */
export async function registerSchema(registry: Registry, subject: string, schema: string): Promise<number> {
  const path = encodeURIComponent(subject);
  const standing = await ask(registry, `/config/${path}`);
  // Before the schema where it can be: so that the first change is judged by the right rule.
  if (standing?.compatibilityLevel !== 'BACKWARD') await setBackward(registry, path);
  const answer = await ask(registry, `/subjects/${path}/versions`, {
    method: 'POST',
    body: { schema, schemaType: 'AVRO' },
  });
  if (typeof answer?.id !== 'number') throw new Error(`schema registry: ${subject}: no id in its answer`);
  // A registry that keeps settings only for subjects that exist: once more.
  if ((await ask(registry, `/config/${path}`))?.compatibilityLevel !== 'BACKWARD') await setBackward(registry, path);
  return answer.id;
}

async function setBackward(registry: Registry, path: string): Promise<void> {
  await ask(registry, `/config/${path}`, { method: 'PUT', body: { compatibility: 'BACKWARD' } });
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
  const fault = new Error(`schema registry: ${path}: ${response.status} ${String(answer.message ?? '')}`.trimEnd());
  throw Object.assign(fault, { status: response.status });
}
