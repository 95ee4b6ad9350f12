// Deploys the demo contracts and grants roles to the signer.
import { readContract, readDemoDeployments } from './contracts.ts';
import { ADMIN, CREATE2_DEPLOYER, DEMO_SALT, type DemoContract } from './demo.ts';
import { callRpc, callRpcs } from './rpc.ts';

export type DemoAddresses = Readonly<Record<DemoContract, `0x${string}`>>;

/** `keccak256` hashes of the role names. The next two constants are function selectors. */
export const ROLES = {
  MINTER_ROLE: '0x9f2df0fed2c77648de5860a4cc508cd0818c85b8b8a1ab4ceeef8d981c8956a6',
  SIGNER_ROLE: '0xe2f4eaae4a9751e85a3e4a7b9587827a877f29914755229b07a7b2da98285f70',
} as const;
const HAS_ROLE = '0x91d14854';
const GRANT_ROLE = '0x2f2ff15d';

const ETHER = 10n ** 18n;
/** A signer with a lower balance is funded. */
const FUNDS_MIN = 10n * ETHER;
const FUNDS = 100n * ETHER;

interface Transaction {
  readonly to: string;
  readonly data?: string;
  readonly value?: string;
}

/** Sends transactions as the administrator and mines a block. @throws Error if a transaction fails */
async function send(rpc: string, transactions: readonly Transaction[]): Promise<void> {
  if (transactions.length === 0) return;
  const hashes: string[] = [];
  // Sent one by one, because the node assigns the nonces.
  for (const transaction of transactions)
    hashes.push(await callRpc<string>(rpc, 'eth_sendTransaction', [{ from: ADMIN, ...transaction }]));
  await callRpc(rpc, 'evm_mine');
  const receipts = await callRpcs<({ status: string } | null)[]>(
    rpc,
    hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const),
  );
  const failed = receipts.findIndex((receipt) => receipt?.status !== '0x1');
  if (failed !== -1) throw new Error(`the transaction to ${transactions[failed]?.to} failed on the chain`);
}

/** Deploys missing demo contracts. Can be repeated. @throws Error if a deployment fails */
export async function deployDemo(rpc: string): Promise<DemoAddresses> {
  const demo = readDemoDeployments();
  const names = Object.keys(demo) as DemoContract[];
  const readCodes = () =>
    callRpcs<string[]>(
      rpc,
      names.map((name) => ['eth_getCode', demo[name].address, 'latest'] as const),
    );
  const codes = await readCodes();
  const deployments = names
    .filter((_, at) => codes[at] === '0x')
    .map((name) => {
      const parts = [readContract(`demo-${name}`).bytecode, demo[name].arguments].map((part) => part.slice(2));
      return { to: CREATE2_DEPLOYER, data: DEMO_SALT + parts.join('') };
    });
  await send(rpc, deployments);
  const absent = (await readCodes()).indexOf('0x');
  if (absent !== -1) throw new Error(`the contract ${names[absent]} was not deployed`);
  return Object.fromEntries(names.map((name) => [name, demo[name].address])) as DemoAddresses;
}

const toArgument = (address: string) => address.slice(2).toLowerCase().padStart(64, '0');

/** Funds an address and grants it the minting roles. Can be repeated. @throws Error if a grant fails */
export async function prepareSigner(rpc: string, signer: string, contracts: DemoAddresses): Promise<void> {
  const pairs = Object.values(contracts).flatMap((to) => Object.values(ROLES).map((role) => ({ to, role })));
  const toData = (selector: string, role: string) => selector + role.slice(2) + toArgument(signer);
  const [balance, ...roles] = await callRpcs<[string, ...string[]]>(rpc, [
    ['eth_getBalance', signer, 'latest'],
    ...pairs.map(({ to, role }) => ['eth_call', { to, data: toData(HAS_ROLE, role) }, 'latest'] as const),
  ]);
  const grants = pairs
    .filter((_, at) => BigInt(roles[at] ?? '0x0') === 0n)
    .map(({ to, role }) => ({ to, data: toData(GRANT_ROLE, role) }));
  const funds = BigInt(balance) < FUNDS_MIN ? [{ to: signer, value: `0x${FUNDS.toString(16)}` }] : [];
  await send(rpc, [...grants, ...funds]);
}
