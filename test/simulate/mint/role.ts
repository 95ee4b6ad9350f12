import { setTimeout as delay } from 'node:timers/promises';
import { grantCallsOf } from '@playline/access-keys';
import type { CallNode } from '@playline/chain';

export type MinterRole = ReturnType<typeof createMinterRole>;

/** Selectors of `revokeRole(bytes32,address)` and `hasRole(bytes32,address)`. */
const REVOKE_ROLE = '0xd547741f';
const HAS_ROLE = '0x91d14854';
const SELECTOR_DIGITS = 10;
const POLL_MS = 250;
const BLOCK_MAX_MS = 60_000;

/** The local stack's node signs for the administrator of the demo contracts, its first account. */
export function createMinterRole(call: CallNode, signer: string, contracts: readonly string[]) {
  const callsOf = () =>
    contracts
      .flatMap((contract) => grantCallsOf({ contract, address: signer }))
      .filter(({ role }) => role === 'MINTER_ROLE');
  const sendAll = async (selector: string | null) => {
    const [administrator] = (await call({ method: 'eth_accounts', params: [] })) as string[];
    const hashes: unknown[] = [];
    for (const { to, data } of callsOf()) {
      const transaction = { from: administrator, to, data: selector === null ? data : withSelector(data, selector) };
      hashes.push(await call({ method: 'eth_sendTransaction', params: [transaction] }));
    }
    for (const hash of hashes) await awaitReceipt(call, hash);
  };
  return {
    /** @returns contracts on which the signer lacks it */
    missing: async (): Promise<readonly string[]> => {
      const missing: string[] = [];
      for (const { to, data } of callsOf()) {
        const query = { to, data: withSelector(data, HAS_ROLE) };
        const answer = await call({ method: 'eth_call', params: [query, 'latest'] });
        if (BigInt(String(answer)) === 0n) missing.push(to);
      }
      return missing;
    },
    /** Resolves when it is in a block. @throws Error when a transaction fails or is not mined */
    grant: () => sendAll(null),
    revoke: () => sendAll(REVOKE_ROLE),
  };
}

const withSelector = (data: string, selector: string) => `${selector}${data.slice(SELECTOR_DIGITS)}`;

async function awaitReceipt(call: CallNode, hash: unknown): Promise<void> {
  const endMs = performance.now() + BLOCK_MAX_MS;
  for (;;) {
    const receipt = (await call({ method: 'eth_getTransactionReceipt', params: [hash] })) as { status?: string } | null;
    if (receipt?.status === '0x1') return;
    if (receipt !== null) throw new Error('the administrator of the demo contracts may not grant or revoke roles');
    if (performance.now() > endMs) throw new Error('a transaction of the administrator was not mined');
    await delay(POLL_MS);
  }
}
