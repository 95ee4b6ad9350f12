import { setTimeout as delay } from 'node:timers/promises';
import { grantCallsOf } from '@playline/access-keys';
import type { AskNode } from '@playline/chain';

/** MINTER_ROLE of one address on some contracts, granted and revoked by their administrator. */
export interface MinterRole {
  /** @returns contracts on which the address lacks it */
  missing(): Promise<readonly string[]>;
  /** Resolves when it is granted on all of them, in a block. @throws Error when a transaction fails or is not mined */
  give(): Promise<void>;
  take(): Promise<void>;
}

export interface MinterRoleOptions {
  readonly ask: AskNode;
  /** Lower case, like the contracts. */
  readonly signer: string;
  readonly contracts: readonly string[];
}

/** Selectors of `revokeRole(bytes32,address)` and `hasRole(bytes32,address)`. */
const REVOKE_ROLE = '0xd547741f';
const HAS_ROLE = '0x91d14854';
const SELECTOR_DIGITS = 10;
const POLL_MS = 250;
/** A block takes a second, or more on a busy machine. */
const BLOCK_MAX_MS = 60_000;

/** The local stack's node signs for the administrator of the demo contracts, its first account. */
export function createMinterRole({ ask, signer, contracts }: MinterRoleOptions): MinterRole {
  const callsOf = () =>
    contracts
      .flatMap((contract) => grantCallsOf({ contract, address: signer }))
      .filter(({ role }) => role === 'MINTER_ROLE');
  const sendAll = async (selector: string | null) => {
    const [administrator] = (await ask({ method: 'eth_accounts', params: [] })) as string[];
    const hashes: unknown[] = [];
    for (const { to, data } of callsOf()) {
      const call = { from: administrator, to, data: selector === null ? data : withSelector(data, selector) };
      hashes.push(await ask({ method: 'eth_sendTransaction', params: [call] }));
    }
    for (const hash of hashes) await awaitReceipt(ask, hash);
  };
  return {
    missing: async () => {
      const missing: string[] = [];
      for (const { to, data } of callsOf()) {
        const call = { to, data: withSelector(data, HAS_ROLE) };
        const answer = await ask({ method: 'eth_call', params: [call, 'latest'] });
        if (BigInt(String(answer)) === 0n) missing.push(to);
      }
      return missing;
    },
    give: () => sendAll(null),
    take: () => sendAll(REVOKE_ROLE),
  };
}

const withSelector = (data: string, selector: string) => `${selector}${data.slice(SELECTOR_DIGITS)}`;

async function awaitReceipt(ask: AskNode, hash: unknown): Promise<void> {
  const endAt = performance.now() + BLOCK_MAX_MS;
  for (;;) {
    const receipt = (await ask({ method: 'eth_getTransactionReceipt', params: [hash] })) as { status?: string } | null;
    if (receipt?.status === '0x1') return;
    if (receipt !== null) throw new Error('the administrator of the demo contracts may not give or take roles');
    if (performance.now() > endAt) throw new Error('no block of the chain takes a transaction of the administrator');
    await delay(POLL_MS);
  }
}
