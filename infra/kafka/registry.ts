import { explainConnection } from '@playline/errors';
import type { StoreFetch, StoreRequest } from '@playline/runtime';

/** Generous: a registration is a few kilobytes on a local network. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONTENT_TYPE = 'application/vnd.schemaregistry.v1+json';

/** The interface's own status for a subject that does not exist yet, or has no compatibility of its own. */
const NOT_FOUND = 404;

/** The interface's own status for a schema that the subject's compatibility does not allow. */
const REFUSED = 409;

/** Address of the registry, and its client. */
export interface Registry {
  readonly url: string;
  readonly fetch?: StoreFetch | undefined;
}

/**
 * Compatibility between all versions of a schema. During a rollout, old and new processes read each other's records. A
 * log, its dead letters and a compacted topic have records of more than two versions.
 */
const COMPATIBILITY = 'FULL_TRANSITIVE';

/** True when the subject has any version. @throws Error when the registry does not answer */
export async function isSubjectKnown(registry: Registry, subject: string): Promise<boolean> {
  return (await ask(registry, `/subjects/${encodeURIComponent(subject)}/versions`)) !== null;
}

/**
 * Registers an Avro schema under a subject of compatibility FULL_TRANSITIVE: processes of every version can read every
 * other version. A schema that is registered already keeps its id, also when it is not the newest.
 * @returns the schema's id
 * @throws Error naming the subject when the registry refuses, for example an incompatible change
 */
export async function registerSchema(registry: Registry, subject: string, schema: string): Promise<number> {
  const path = encodeURIComponent(subject);
  const standing = await ask(registry, `/config/${path}`);
  // Set before the schema if possible, so that the first change is already checked by this rule.
  if (standing?.compatibilityLevel !== COMPATIBILITY) await setCompatibility(registry, path);
  const answer = await ask(registry, `/subjects/${path}/versions`, {
    method: 'POST',
    body: { schema, schemaType: 'AVRO' },
  });
  if (typeof answer?.id !== 'number') throw new Error(`schema registry: ${subject}: no id in its answer`);
  // Again, for registries that keep settings only for existing subjects.
  if ((await ask(registry, `/config/${path}`))?.compatibilityLevel !== COMPATIBILITY)
    await setCompatibility(registry, path);
  return answer.id;
}

async function setCompatibility(registry: Registry, path: string): Promise<void> {
  await ask(registry, `/config/${path}`, { method: 'PUT', body: { compatibility: COMPATIBILITY } });
}

type Answer = { id?: unknown; compatibilityLevel?: unknown; message?: unknown };

/** Sends GET, or the request of `change`. @returns null for 404 */
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
  const response = await (registry.fetch ?? fetch)(registry.url + path, request).catch((fault: unknown) => {
    const { sentence, isRefusal } = explainConnection('the schema registry', fault);
    // The command explains refusals of both stores itself.
    throw isRefusal ? fault : new Error(sentence, { cause: fault });
  });
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
