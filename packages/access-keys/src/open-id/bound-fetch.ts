import type { CustomFetch } from 'openid-client';
import { ProviderAway } from '../accounts/open-id.ts';

export interface BoundFetchOptions {
  /** What may be asked. */
  readonly origins: readonly string[];
  readonly timeoutMs: number;
}

/** Ten times the size of a large provider's metadata. */
const ANSWER_BYTES_MAX = 512 * 1024;

/** What the library says of a request. */
type Asked = Parameters<CustomFetch>[1];

/**
 * Creates a `fetch` that asks only the provider, follows no redirect elsewhere, and bounds both time and size of the
 * answer.
 * @returns throws ProviderAway when no answer comes, and for a status of 500 and above
 */
export function createBoundFetch({ origins, timeoutMs }: BoundFetchOptions) {
  return async (address: string, { body, headers, method }: Asked): Promise<Response> => {
    if (!origins.includes(new URL(address).origin))
      throw new ProviderAway('the provider names an address that is not known as its own');
    const { status, bytes, ...answer } = await askFor(address, {
      method,
      headers,
      redirect: 'manual',
      // The forms that it sends are texts.
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (status >= 500) throw new ProviderAway(`the provider answers ${status}`);
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: answer.headers });
  };
}

async function askFor(address: string, request: RequestInit) {
  try {
    const answer = await fetch(address, request);
    return { status: answer.status, headers: answer.headers, bytes: await readAtMost(answer, ANSWER_BYTES_MAX) };
  } catch (cause) {
    if (cause instanceof ProviderAway) throw cause;
    throw new ProviderAway('the provider does not answer');
  }
}

async function readAtMost({ body }: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.length;
    // Leaving the loop closes the connection.
    if (length > bytesMax) throw new ProviderAway('the provider answers more than anybody reads');
    parts.push(part);
  }
  return new Uint8Array(Buffer.concat(parts));
}
