import { type ActivityRecord, activityCodec, frameRecord, type TokenRecord, tokenCodec } from '@playline/contracts';

const bytesOf = (length: number, number: number): Buffer => {
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32BE(number, length - 4);
  return bytes;
};

const HOLDER = `0x${'1'.repeat(40)}`;
const PARTIES = {
  mint: { to: HOLDER },
  deposit: { to: HOLDER },
  burn: { from: HOLDER },
  withdrawal: { from: HOLDER },
  transfer: { from: HOLDER, to: HOLDER },
};

/** Returns the details of an activity whose contract is given by number. Updates differ in the amount. */
export const detailsOf = (number: number, amount = '1', type: keyof typeof PARTIES = 'mint'): string => {
  const asset = { contract_type: 'ERC20', contract_address: `0x${bytesOf(20, number).toString('hex')}` };
  return JSON.stringify({ ...PARTIES[type], amount, asset });
};

/** Returns a mint whose ID, contract and transaction are derived from the number. */
export function activityOf(number: number, changes: Partial<ActivityRecord> = {}): ActivityRecord {
  return {
    chain: 'test-chain',
    id: bytesOf(16, number),
    type: 'mint',
    contractAddress: bytesOf(20, number),
    indexedAt: 1_700_000_000_000_000 + number,
    blockchainMetadata: {
      transactionHash: bytesOf(32, number),
      blockNumber: String(number),
      transactionIndex: '0',
      logIndex: null,
    },
    details: detailsOf(number),
    traceId: '',
    ...changes,
  };
}

export function tokenOf(number: number, changes: Partial<TokenRecord> = {}): TokenRecord {
  return {
    chain: 'test-chain',
    contractAddress: bytesOf(20, number),
    rootContractAddress: null,
    symbol: 'TST',
    decimals: 18,
    imageUrl: null,
    name: null,
    verificationStatus: 'verified',
    isCanonical: true,
    rootChainId: null,
    bridgeUsed: null,
    traceId: '',
    ...changes,
  };
}

export const activityValue = (schemaId: number, record: ActivityRecord): Buffer =>
  frameRecord(schemaId, activityCodec.encode(record));
export const tokenValue = (schemaId: number, record: TokenRecord): Buffer =>
  frameRecord(schemaId, tokenCodec.encode(record));
