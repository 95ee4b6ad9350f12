// Floor for minting: viem mints BATCHES times ASSETS tokens with the same contract function, a separate key and at most
// OPEN transactions that are not yet final. Unlike the minter, it does not handle reorganisations.
import { setTimeout as delay } from 'node:timers/promises';
import { type DemoAddresses, deployDemo, prepareSigner } from '@playline/infra/chain';
import { CONTRACT_ABIS } from '@playline/testkit/chain';
import { createPublicClient, createWalletClient, defineChain, type Hash, http } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startMeter } from '../floors/meter.ts';

const { NODE_URL = '' } = process.env;
const [batches = 0, assets = 0, open = 0, pollMs = 0, chainId = 0] = [
  'BATCHES',
  'ASSETS',
  'OPEN',
  'POLL_MS',
  'CHAIN_ID',
].map((name) => Number(process.env[name]));

const chain = defineChain({
  id: chainId,
  name: 'bench',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [NODE_URL] } },
});
const account = privateKeyToAccount(generatePrivateKey());
const wallet = createWalletClient({ account, chain, transport: http(NODE_URL) });
const reader = createPublicClient({ chain, transport: http(NODE_URL), cacheTime: 0 });
const contracts: DemoAddresses = await deployDemo(NODE_URL);
await prepareSigner(NODE_URL, account.address, contracts);

let nonce = 0;
function send(): Promise<Hash> {
  const owner = (index: number) => `0x${(nonce * assets + index + 1).toString(16).padStart(40, '0')}` as const;
  const mints = Array.from({ length: assets }, (_, index) => ({ to: owner(index), quantity: 1n }));
  return wallet.writeContract({
    address: contracts.erc721,
    abi: CONTRACT_ABIS['demo-erc721'],
    functionName: 'mintBatchByQuantity',
    args: [mints],
    nonce: nonce++,
  });
}

async function isFinal(hash: Hash, horizon: bigint): Promise<boolean> {
  const receipt = await reader.getTransactionReceipt({ hash }).catch(() => null);
  if (receipt?.status === 'reverted') throw new Error(`${hash} reverted`);
  return receipt !== null && receipt.blockNumber <= horizon;
}

const meter = startMeter();
let sent: Hash[] = [];
for (let done = 0; done < batches; ) {
  while (sent.length < open && done + sent.length < batches) sent.push(await send());
  await delay(pollMs);
  const { number: horizon } = await reader.getBlock({ blockTag: 'finalized' });
  const pending: Hash[] = [];
  for (const hash of sent) if (!(await isFinal(hash, horizon))) pending.push(hash);
  done += sent.length - pending.length;
  sent = pending;
}
meter.send(batches * assets);
