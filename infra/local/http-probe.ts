// Probes of HTTP endpoints.

const RESPONSE_MAX_MS = 2000;

/** @throws Error if the status is not 2xx */
export async function respondsOk(url: string): Promise<boolean> {
  const response = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(RESPONSE_MAX_MS) });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`it responds with status ${response.status}`);
  return true;
}

/** The response of `/readyz`. */
interface Readiness {
  notReady?: string[];
  degraded?: string[];
  reasons?: Record<string, string>;
}

async function fetchReadiness(admin: string): Promise<{ isReady: boolean; readiness: Readiness }> {
  const options = { headers: { connection: 'close' }, signal: AbortSignal.timeout(RESPONSE_MAX_MS) };
  const response = await fetch(`${admin}/readyz`, options);
  return { isReady: response.ok, readiness: (await response.json()) as Readiness };
}

const toSentence = (names: readonly string[] = [], { reasons = {} }: Readiness) =>
  [names.join(', '), ...Object.values(reasons)].join('; ');

/** @throws Error with the reasons if a service is not ready */
export async function assertReady(admin: string): Promise<boolean> {
  const { isReady, readiness } = await fetchReadiness(admin);
  if (isReady) return true;
  throw new Error(`not ready: ${toSentence(readiness.notReady, readiness)}`);
}

/** @returns why a ready service is degraded, or null if it is fully functional @throws Error if it is not ready */
export async function readDegraded(admin: string): Promise<string | null> {
  const { isReady, readiness } = await fetchReadiness(admin);
  if (!isReady) throw new Error(`not ready: ${toSentence(readiness.notReady, readiness)}`);
  return readiness.degraded === undefined ? null : toSentence(readiness.degraded, readiness);
}
