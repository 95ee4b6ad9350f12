import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench } from '../figure.ts';
import type { Server } from '../gateway-servers.ts';
import { waitFor } from '../processes.ts';
import type { MintScene } from './mint-scene.ts';

/** A typical asset: some hundred bytes of metadata, and no token id, so the contract assigns one. */
export function createAssetBody(number: number): Record<string, unknown> {
  return {
    reference_id: randomUUID(),
    owner_address: `0x${(number + 1).toString(16).padStart(40, '0')}`,
    metadata: {
      name: `Sword #${number}`,
      image: `https://assets.example.com/swords/${number}.png`,
      description: 'A sword that was forged in a volcano, and given to whoever came first.',
      attributes: [
        { trait_type: 'Material', value: 'Obsidian' },
        { trait_type: 'Damage', value: number % 100, display_type: 'number' },
        { trait_type: 'Season', value: 'Third' },
      ],
    },
  };
}

/** Header fields of a caller who may request mints. */
export const mintHeadersOf = ({ secretKey }: Bench): Record<string, string> => ({
  'content-type': 'application/json',
  'x-service-api-key': secretKey,
});

/** An accepted mint request. */
export interface MintOrderSent {
  /** Reference id of its last asset, which is minted last. */
  readonly referenceId: string;
  /** The time (`performance.now`) before it was sent. */
  readonly sentAtMs: number;
}

/** Sends one request. @throws Error unless it is accepted */
export async function sendOrder(
  bench: Bench,
  { api, scene }: { api: Server; scene: MintScene },
  assets: number,
): Promise<MintOrderSent> {
  const bodies = Array.from({ length: assets }, (_, at) => createAssetBody(at));
  const sentAtMs = performance.now();
  const answer = await fetch(`http://127.0.0.1:${api.port}${scene.path}`, {
    method: 'POST',
    headers: mintHeadersOf(bench),
    body: JSON.stringify({ assets: bodies }),
  });
  if (answer.status !== 202) throw new Error(`an order was answered with ${answer.status}: ${await answer.text()}`);
  return { referenceId: String(bodies.at(-1)!.reference_id), sentAtMs };
}

const ACCEPTED_MAX_MS = 60_000;

/**
 * Sends one asset until it is accepted. The chain API accepts nothing until the writer has stored what is on the log.
 */
export async function sendFirstOrder(bench: Bench, servers: { api: Server; scene: MintScene }): Promise<MintOrderSent> {
  const sent: MintOrderSent[] = [];
  const isAccepted = async () => sent.push(await sendOrder(bench, servers, 1)) > 0;
  await waitFor('an order is accepted', isAccepted, { measured: servers.api, maxMs: ACCEPTED_MAX_MS });
  return sent[0]!;
}

interface MintAnswer {
  readonly result: readonly { readonly status: string; readonly error: { readonly message: string } | null }[];
}

/** A tenth of the time between two blocks. */
const LOOK_EVERY_MS = 100;
const MINTED_MAX_MS = 600_000;

/**
 * Waits until the chain API reports that the last asset of a request has succeeded.
 * @throws Error when it has failed
 */
export async function waitUntilMinted(
  bench: Bench,
  { api, scene }: { api: Server; scene: MintScene },
  { referenceId, lookEveryMs = LOOK_EVERY_MS }: { referenceId: string; lookEveryMs?: number },
): Promise<void> {
  const url = `http://127.0.0.1:${api.port}${scene.path}/${referenceId}`;
  const endMs = performance.now() + MINTED_MAX_MS;
  for (;;) {
    const answer = await fetch(url, { headers: mintHeadersOf(bench) });
    const { result } = (await answer.json()) as MintAnswer;
    const [request] = result ?? [];
    if (request?.status === 'succeeded') return;
    if (request?.status === 'failed') throw new Error(`a mint has failed: ${request.error?.message}`);
    if (performance.now() > endMs) throw new Error(`${referenceId} was not minted in time`);
    await delay(lookEveryMs);
  }
}
