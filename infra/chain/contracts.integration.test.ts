import { CONTRACT_ABIS, openTestChain, type TestChain } from '@playline/testkit/chain';
import {
  type Abi,
  type Address,
  keccak256,
  parseEventLogs,
  stringToHex,
  toFunctionSelector,
  toHex,
  zeroAddress,
} from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoAddresses, ROLES } from './deploy-demo.ts';

const [ERC721, ERC1155, ERC20] = [
  CONTRACT_ABIS['demo-erc721'],
  CONTRACT_ABIS['demo-erc1155'],
  CONTRACT_ABIS['demo-erc20'],
];
const THRESHOLD = 2n ** 128n;

let chain: TestChain;
let contracts: DemoAddresses;
let [admin, minter, ada, bob, other]: Address[] = [];

beforeAll(async () => {
  chain = await openTestChain({ mining: 'each' });
  [admin, minter, ada, bob, other] = chain.accounts;
  contracts = await chain.deployDemo(minter);
});

afterAll(() => chain?.close());

interface Call {
  readonly address: Address;
  readonly abi: Abi;
  readonly functionName: string;
  readonly args: readonly unknown[];
  readonly account?: Address;
}

async function call(request: Call) {
  const { request: simulated } = await chain.client.simulateContract({ account: minter!, ...request });
  const hash = await chain.client.writeContract(simulated as never);
  const { status, logs } = await chain.client.waitForTransactionReceipt({ hash });
  expect(status).toBe('success');
  return logs;
}

const createCaller =
  (abi: Abi, addressOf: () => Address) =>
  (functionName: string, args: readonly unknown[], account: Address = minter!) =>
    call({ address: addressOf(), abi, functionName, args, account });
const erc721 = createCaller(ERC721, () => contracts.erc721);
const erc1155 = createCaller(ERC1155, () => contracts.erc1155);

const ownerOf = (tokenId: bigint) =>
  chain.client.readContract({ address: contracts.erc721, abi: ERC721, functionName: 'ownerOf', args: [tokenId] });

const readTransfers = (logs: Awaited<ReturnType<typeof call>>) =>
  parseEventLogs({ abi: ERC721, logs, eventName: 'Transfer' }).map(({ args }) => [args.from, args.to, args.tokenId]);

describe('contract roles', () => {
  it('have the standard names and selectors', async () => {
    for (const [name, role] of Object.entries(ROLES)) expect(role).toBe(keccak256(stringToHex(name)));
    expect(toFunctionSelector('hasRole(bytes32,address)')).toBe('0x91d14854');
    expect(toFunctionSelector('grantRole(bytes32,address)')).toBe('0x2f2ff15d');
  });

  it('can be granted and revoked only by the administrator, and are required for minting', async () => {
    const roleCall = { address: contracts.erc721, abi: ERC721, args: [ROLES.MINTER_ROLE, other!] } as const;
    const hasRole = () => chain.client.readContract({ ...roleCall, functionName: 'hasRole' });
    const mint = (tokenId: bigint) => erc721('mintBatch', [[{ to: ada, tokenIds: [tokenId] }]], other);
    await expect(mint(1n)).rejects.toThrow(/AccessControlUnauthorizedAccount/);
    await expect(call({ ...roleCall, functionName: 'grantRole', account: other! })).rejects.toThrow(/Unauthorized/);
    await call({ ...roleCall, functionName: 'grantRole', account: admin! });
    expect(await hasRole()).toBe(true);
    await mint(1n);
    await call({ ...roleCall, functionName: 'revokeRole', account: admin! });
    expect(await hasRole()).toBe(false);
    await expect(mint(2n)).rejects.toThrow(/AccessControlUnauthorizedAccount/);
  });

  it('are required by every mint function', async () => {
    const unauthorized = /AccessControlUnauthorizedAccount/;
    await expect(erc721('mintBatchByQuantity', [[{ to: ada, quantity: 1n }]], other)).rejects.toThrow(unauthorized);
    await expect(erc1155('safeMint', [ada, 1n, 1n, '0x'], other)).rejects.toThrow(unauthorized);
    await expect(erc1155('safeMintBatch', [ada, [1n], [1n], '0x'], other)).rejects.toThrow(unauthorized);
    const mint = { address: contracts.erc20, abi: ERC20, functionName: 'mint', args: [ada, 1n] } as const;
    await expect(call({ ...mint, account: other! })).rejects.toThrow(unauthorized);
  });
});

describe('ERC-721 tokens', () => {
  it('are minted with the requested ids, with one event each, in batch order', async () => {
    const logs = await erc721('mintBatch', [
      [
        { to: ada, tokenIds: [11n, 10n] },
        { to: bob, tokenIds: [THRESHOLD - 1n] },
      ],
    ]);
    expect(readTransfers(logs)).toEqual([
      [zeroAddress, ada, 11n],
      [zeroAddress, ada, 10n],
      [zeroAddress, bob, THRESHOLD - 1n],
    ]);
    expect(await ownerOf(10n)).toBe(ada);
  });

  it('are refused with their batch if a token is a duplicate, an id is above the threshold, or the owner is the zero address', async () => {
    await erc721('mintBatch', [[{ to: ada, tokenIds: [20n] }]]);
    const mint = (to: Address, ...tokenIds: bigint[]) => erc721('mintBatch', [[{ to, tokenIds }]]);
    await expect(mint(bob!, 21n, 20n)).rejects.toThrow(/TokenAlreadyMinted\(uint256 tokenId\)\s+\(20\)/);
    await expect(mint(bob!, 21n, 21n)).rejects.toThrow(/TokenAlreadyMinted/);
    await expect(mint(bob!, 21n, THRESHOLD)).rejects.toThrow(/TokenIdNotBelowThreshold/);
    await expect(mint(zeroAddress, 21n)).rejects.toThrow(/ERC721InvalidReceiver/);
    await expect(ownerOf(21n)).rejects.toThrow(/ERC721NonexistentToken/);
    expect(await ownerOf(20n)).toBe(ada);
  });

  it('receive unused ids above the threshold if only a quantity is requested', async () => {
    const read = { address: contracts.erc721, abi: ERC721, functionName: 'mintBatchByQuantityThreshold' } as const;
    expect(await chain.client.readContract(read)).toBe(THRESHOLD);
    const first = [
      { to: ada, quantity: 2n },
      { to: bob, quantity: 1n },
    ];
    expect(readTransfers(await erc721('mintBatchByQuantity', [first]))).toEqual([
      [zeroAddress, ada, THRESHOLD],
      [zeroAddress, ada, THRESHOLD + 1n],
      [zeroAddress, bob, THRESHOLD + 2n],
    ]);
    await expect(erc721('mintBatchByQuantity', [[{ to: ada, quantity: 0n }]])).rejects.toThrow(/QuantityIsZero/);
    await erc721('burn', [THRESHOLD], ada);
    const [[, , next] = []] = readTransfers(await erc721('mintBatchByQuantity', [[{ to: bob, quantity: 1n }]]));
    expect(next).toBe(THRESHOLD + 3n);
  });

  it('can be burned only by their owner, which reduces the total supply', async () => {
    const supply = () =>
      chain.client.readContract({ address: contracts.erc721, abi: ERC721, functionName: 'totalSupply' });
    await erc721('mintBatch', [[{ to: ada, tokenIds: [30n, 31n] }]]);
    const before = await supply();
    await expect(erc721('burn', [30n], bob)).rejects.toThrow(/ERC721InsufficientApproval/);
    await expect(erc721('burn', [39n], ada)).rejects.toThrow(/ERC721NonexistentToken/);
    await erc721('burn', [30n], ada);
    expect(await supply()).toBe(before - 1n);
  });
});

describe('ERC-1155 tokens', () => {
  const balance = (id: bigint, owner = ada!) =>
    chain.client.readContract({
      address: contracts.erc1155,
      abi: ERC1155,
      functionName: 'balanceOf',
      args: [owner, id],
    });

  it('are minted with one or several ids, including duplicate ids in a batch', async () => {
    await erc1155('safeMint', [ada, 1n, 5n, '0x']);
    const logs = await erc1155('safeMintBatch', [ada, [1n, 2n, 1n], [1n, 7n, 2n], '0x']);
    const [batch] = parseEventLogs({ abi: ERC1155, logs, eventName: 'TransferBatch' });
    expect(batch?.args).toMatchObject({ from: zeroAddress, to: ada, ids: [1n, 2n, 1n], values: [1n, 7n, 2n] });
    expect([await balance(1n), await balance(2n)]).toEqual([8n, 7n]);
  });

  it('are refused for the zero address, for a contract that does not accept tokens, and for lists of different lengths', async () => {
    await expect(erc1155('safeMint', [zeroAddress, 3n, 1n, '0x'])).rejects.toThrow(/ERC1155InvalidReceiver/);
    await expect(erc1155('safeMint', [contracts.erc20, 3n, 1n, '0x'])).rejects.toThrow(/ERC1155InvalidReceiver/);
    await expect(erc1155('safeMintBatch', [ada, [3n, 4n], [1n], '0x'])).rejects.toThrow(/ERC1155InvalidArrayLength/);
    expect(await balance(3n)).toBe(0n);
  });

  it('can be burned only by their owner, which reduces the total supply', async () => {
    const read = { address: contracts.erc1155, abi: ERC1155, functionName: 'totalSupply', args: [9n] } as const;
    await erc1155('safeMint', [ada, 9n, 5n, '0x']);
    await expect(erc1155('burn', [ada, 9n, 1n], bob)).rejects.toThrow(/ERC1155MissingApprovalForAll/);
    await expect(erc1155('burn', [ada, 9n, 6n], ada)).rejects.toThrow(/ERC1155InsufficientBalance/);
    await erc1155('burn', [ada, 9n, 2n], ada);
    expect(await chain.client.readContract(read)).toBe(3n);
  });
});

describe('the log emitter', () => {
  it('emits arbitrary logs, including large numbers of logs, and no logs when it reverts', async () => {
    const address = await chain.deploy('log-emitter');
    const abi = CONTRACT_ABIS['log-emitter'];
    const topics = [1n, 2n, 3n, 4n].map((each) => toHex(each, { size: 32 }));
    const all = [0, 1, 2, 3, 4].map((count) => ({ topics: topics.slice(0, count), data: toHex(`with ${count}`) }));
    const emitted = await call({ address, abi, functionName: 'emitLogs', args: [all] });
    expect(emitted.map((log) => ({ topics: log.topics, data: log.data }))).toEqual(all);
    const many = await call({ address, abi, functionName: 'repeatLog', args: [all[4], 500n] });
    expect(many.map(({ logIndex }) => logIndex)).toEqual(Array.from({ length: 500 }, (_, index) => index));
    const reverted = call({ address, abi, functionName: 'emitAndRevert', args: [all[4]] });
    await expect(reverted).rejects.toThrow(/RevertedAsRequested/);
    const five = { topics: [...topics, topics[0]], data: '0x' };
    await expect(call({ address, abi, functionName: 'emitLogs', args: [[five]] })).rejects.toThrow(/TooManyTopics/);
  });
});
