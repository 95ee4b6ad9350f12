import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench } from '../figure.ts';
import { waitFor } from '../processes.ts';
import type { Server } from '../services.ts';
import type { MintScene } from './mint-scene.ts';

export interface MintServers {
  readonly api: Server;
  readonly scene: MintScene;
}

/** A typical asset: some hundred bytes of metadata, and no token id, so the contract assigns one. */
export function createAssetBody(number: number): Record<string, unknown> {
  return {
    reference_id: randomUUID(),
    owner_address: `0x${(number + 1).toString(16).padStart(40, '0')}`,
    metadata: {
      name: `Sword #${number}`,
      image: `https://assets.example.com/swords/${number}.png`,
      description: 'A sword that was forged in a volcano, and found by the first who dared to enter.',
      attributes: [
        { trait_type: 'Material', value: 'Obsidian' },
        { trait_type: 'Damage', value: number % 100, display_type: 'number' },
        { trait_type: 'Season', value: 'Third' },
      ],
    },
  };
}

export const mintHeadersOf = ({ secretKey }: Bench): Record<string, string> => ({
  'content-type': 'application/json',
  'x-service-api-key': secretKey,
});

/** @returns the body of the answer @throws Error unless the order is accepted */
export async function postOrder(bench: Bench, { api, scene }: MintServers, assets: readonly object[]): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${api.port}${scene.path}`, {
    method: 'POST',
    headers: mintHeadersOf(bench),
    body: JSON.stringify({ assets }),
  });
  const text = await answer.text();
  if (answer.status !== 202) throw new Error(`an order was answered with ${answer.status}: ${text}`);
  return text;
}

/** Orders new assets. @returns the reference id of the last one, which is minted last */
export async function sendOrder(bench: Bench, servers: MintServers, assets: number): Promise<string> {
  const bodies = Array.from({ length: assets }, (_, index) => createAssetBody(index));
  await postOrder(bench, servers, bodies);
  return String(bodies.at(-1)!.reference_id);
}

/** Orders one asset until it is accepted: the chain API accepts nothing until the writer has stored the log. */
export async function sendFirstOrder(bench: Bench, servers: MintServers): Promise<string> {
  let referenceId = '';
  const isAccepted = async () => {
    referenceId = await sendOrder(bench, servers, 1);
    return true;
  };
  await waitFor('an order is accepted', isAccepted, { measured: servers.api, maxMs: 60_000 });
  return referenceId;
}

interface MintAnswer {
  readonly result?: readonly { readonly status: string; readonly error: { readonly message: string } | null }[];
}

const MINTED_MAX_MS = 600_000;

/** Waits until the chain API reports that an asset has succeeded. @throws Error when it has failed */
export async function waitUntilMinted(bench: Bench, { api, scene }: MintServers, referenceId: string, pollMs = 100) {
  const url = `http://127.0.0.1:${api.port}${scene.path}/${referenceId}`;
  const endMs = performance.now() + MINTED_MAX_MS;
  for (;;) {
    const answer = await fetch(url, { headers: mintHeadersOf(bench) });
    const [request] = ((await answer.json()) as MintAnswer).result ?? [];
    if (request?.status === 'succeeded') return;
    if (request?.status === 'failed') throw new Error(`a mint has failed: ${request.error?.message}`);
    if (performance.now() > endMs) throw new Error(`${referenceId} was not minted in time`);
    await delay(pollMs);
  }
}
