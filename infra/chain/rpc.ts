// JSON-RPC over HTTP.

/** A state of some megabytes takes a second on a busy machine. */
const ANSWER_MS = 20_000;

/** @throws Error with the method and the node's message */
export async function callRpc<T>(rpc: string, method: string, params: readonly unknown[] = []): Promise<T> {
  const [answer] = await callRpcs<[T]>(rpc, [[method, ...params]]);
  return answer;
}

/** Sends requests as one batch. @throws Error with the message of the first that failed */
export async function callRpcs<T extends unknown[]>(
  rpc: string,
  requests: readonly (readonly [method: string, ...params: unknown[]])[],
): Promise<T> {
  const calls = requests.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }));
  const response = await fetch(rpc, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (!response.ok) throw new Error(`the chain answers with status ${response.status}`);
  const answers = (await response.json()) as { id: number; result?: unknown; error?: { message: string } }[];
  return calls.map(({ id, method }) => {
    const answer = answers.find((each) => each.id === id);
    if (answer?.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
    return answer?.result;
  }) as T;
}
