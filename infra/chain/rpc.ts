// JSON-RPC over HTTP.

/** On a busy machine, dumping a state of a few megabytes takes a second. */
const TIMEOUT_MS = 20_000;

/** Sends one request. @throws Error with the method and the node's message */
export async function callRpc<T>(rpc: string, method: string, params: readonly unknown[] = []): Promise<T> {
  const [result] = await callRpcs<[T]>(rpc, [[method, ...params]]);
  return result;
}

/** Sends requests as one batch. @throws Error with the message of the first request that failed */
export async function callRpcs<T extends unknown[]>(
  rpc: string,
  requests: readonly (readonly [method: string, ...params: unknown[]])[],
): Promise<T> {
  const calls = requests.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }));
  const response = await fetch(rpc, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`the chain node responded with status ${response.status}`);
  const results = (await response.json()) as { id: number; result?: unknown; error?: { message: string } }[];
  return calls.map(({ id, method }) => {
    const result = results.find((each) => each.id === id);
    if (result?.error !== undefined) throw new Error(`${method}: ${result.error.message}`);
    return result?.result;
  }) as T;
}
