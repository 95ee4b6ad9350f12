import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type StackFile, secretKeyHeaderOf } from './stack-file.ts';

/**
 * Some blocks of a second each until the mint is final, the poll intervals of minter and indexer, and a busy machine.
 */
const FINAL_MAX_MS = 120_000;
const POLL_MS = 250;

/** Result of the mint request of a stack that has just started. */
export interface ProvenMint {
  readonly referenceId: string;
  readonly transactionHash: string;
  readonly activityId: string;
  /** From the answer 202 until the mint is `succeeded`. */
  readonly succeededMs: number;
  /** From the answer 202 until the history has the mint. */
  readonly shownMs: number;
}

interface MintRequest {
  readonly status: string;
  readonly transaction_hash: string | null;
  readonly activity_id: string | null;
  readonly error: { readonly message: string } | null;
}

/**
 * Requests one token of the demo project's ERC-721. Waits until it is minted and final, and visible in the history.
 * @returns null when the stack has no chain
 * @throws Error when it is refused, fails, or takes too long
 */
export async function proveMint(file: StackFile, wallClockMs: () => number = Date.now): Promise<ProvenMint | null> {
  const { chain, chainApi, chains = [], keys } = file;
  const [served] = chains;
  if (chain === undefined || chainApi === undefined || served === undefined || keys === undefined) return null;
  const chainUrl = `${chainApi}/v1/chains/${served.name}`;
  const contract = chain.contracts.erc721;
  const mintsUrl = `${chainUrl}/collections/${contract}/nfts/mint-requests`;
  const headers = { [secretKeyHeaderOf(file)]: keys.development.secret };
  const referenceId = `start-${randomUUID()}`;
  const assets = [{ reference_id: referenceId, owner_address: chain.signer }];
  // A minute earlier, because the node has its own clock.
  const fromIndexedAt = new Date(wallClockMs() - 60_000).toISOString();
  await askJson(mintsUrl, { method: 'POST', headers, body: JSON.stringify({ assets }) });
  const acceptedAtMs = performance.now();
  const request = await waitFor('the mint is not final', async () => {
    const found = await askJson<{ result: MintRequest[] }>(`${mintsUrl}/${referenceId}`, { headers });
    const [first] = found.result;
    if (first?.status === 'failed') throw new Error(`the mint failed: ${first.error?.message}`);
    return first?.status === 'succeeded' ? first : null;
  });
  const succeededMs = performance.now() - acceptedAtMs;
  const query = new URLSearchParams({
    contract_address: contract,
    activity_type: 'mint',
    from_indexed_at: fromIndexedAt,
  });
  await waitFor('the mint is not in the history', async () => {
    const { result } = await askJson<{ result: { id: string }[] }>(`${chainUrl}/activity-history?${query}`);
    return result.find(({ id }) => id === request.activity_id) ?? null;
  });
  return {
    referenceId,
    transactionHash: request.transaction_hash ?? '',
    activityId: request.activity_id ?? '',
    succeededMs,
    shownMs: performance.now() - acceptedAtMs,
  };
}

async function askJson<T>(url: string, { headers, ...init }: RequestInit = {}): Promise<T> {
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(url, {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the chain API answered with ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as T;
}

async function waitFor<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const begunAtMs = performance.now();
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() - begunAtMs > FINAL_MAX_MS) throw new Error(`${what} after ${FINAL_MAX_MS / 1000} s`);
    await delay(POLL_MS);
  }
}
