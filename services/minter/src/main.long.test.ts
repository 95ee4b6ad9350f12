import { afterEach, describe, expect, it } from 'vitest';
import { ownerOf } from './test/mint-requests.ts';
import { runStorm } from './test/mint-storm.ts';
import { type Minting, openMinting, toTokens } from './test/open-minting.ts';

const TEST_MAX_MS = 110_000;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

let minting: Minting;
afterEach(() => minting.close());

describe('the minter on real brokers and a real node', { timeout: TEST_MAX_MS }, () => {
  it('the minter mints by token id, quantity and amount, and a bad asset does not affect other assets', async () => {
    minting = await openMinting();
    const { erc721, erc1155 } = minting.contracts;
    await minting.publish([
      ...[1, 2, 3].map((id) => ({ contract: erc721, referenceId: `id ${id}`, tokenId: `${id}`, owner: ownerOf(id) })),
      { contract: erc721, referenceId: 'id 2 again', tokenId: '2', owner: ownerOf(9) },
      ...[1, 2].map((id) => ({ contract: erc721, referenceId: `quantity ${id}`, owner: ownerOf(id) })),
      ...[1, 2].map((id) => ({
        contract: erc1155,
        referenceId: `kind ${id}`,
        tokenId: '7',
        amount: `${id}`,
        owner: ownerOf(5),
      })),
      { contract: erc1155, referenceId: 'alone', tokenId: '8', amount: '3', owner: ownerOf(6) },
      { contract: erc721, referenceId: 'no receiver', tokenId: '4', owner: ZERO_ADDRESS },
    ]);
    const minter = await minting.start();
    const states = await minting.settled(10);
    expect(await minting.tokens()).toEqual(toTokens(states));
    const failed = states.filter(({ status }) => status === 'failed');
    expect(new Map(failed.map(({ referenceId, error }) => [referenceId, error]))).toEqual(
      new Map([
        ['id 2 again', 'TokenAlreadyMinted(2)'],
        ['no receiver', `ERC721InvalidReceiver(${ZERO_ADDRESS})`],
      ]),
    );
    expect(await minter.stop('SIGTERM')).toBe(0);
  });

  it('the minter mints each reference id once even if minters are killed, frozen or duplicated and blocks are replaced', async () => {
    minting = await openMinting();
    const { requests, succeeded, failed } = await runStorm(minting, Number(process.env.FAULT_SEED ?? 1));
    expect(succeeded + failed).toBe(requests);
    expect(succeeded).toBeGreaterThan(0);
  });
});
