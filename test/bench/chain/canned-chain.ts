import { hash } from 'node:crypto';
import { keccak } from '@playline/chain';

export type CannedBlock = ReturnType<typeof createCannedBlock>;

const CONTRACTS = 500;
const OWNERS = 20_000;
/** One transfer in ten is a mint: its sender is the zero address. */
const MINT_EVERY = 10;
const LOGS_PER_TRANSACTION = 2;
const FIRST_BLOCK_S = 1_600_000_000;
const BLOCK_S = 2;
const BLOOM_BYTES = 256;
const BLOOM_BIT_MASK = 2_047;

/** Literals, so that the input does not depend on the code under test. */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const TRANSFER_SINGLE = '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62';
const ZERO_WORD = `0x${'0'.repeat(64)}`;

const hashOf = (text: string) => `0x${hash('sha256', text)}`;
const toQuantity = (number: number) => `0x${number.toString(16)}`;
const toWord = (number: number) => number.toString(16).padStart(64, '0');
const addressOf = (text: string) => `0x${hash('sha256', text).slice(0, 40)}`;
const toTopic = (address: string) => `0x${'0'.repeat(24)}${address.slice(2)}`;

export const blockHashOf = (number: number): string => hashOf(`block ${number}`);

const contracts = Array.from({ length: CONTRACTS }, (_, index) => addressOf(`contract ${index}`));
const owners = Array.from({ length: OWNERS }, (_, index) => toTopic(addressOf(`owner ${index}`)));

function mix(number: number, salt: number): number {
  let bits = (Math.imul(number, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b)) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d);
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b);
  return (bits ^ (bits >>> 16)) >>> 0;
}

const bitsByText = new Map<string, readonly number[]>();

function bitsOf(text: string): readonly number[] {
  const bytes = keccak(Buffer.from(text.slice(2), 'hex'));
  return [0, 2, 4].map((offset) => bytes.readUInt16BE(offset) & BLOOM_BIT_MASK);
}

function readCachedBits(text: string): readonly number[] {
  const bits = bitsByText.get(text) ?? bitsOf(text);
  bitsByText.set(text, bits);
  return bits;
}

function addBits(bloom: Buffer, bits: readonly number[]): void {
  for (const bit of bits) bloom[BLOOM_BYTES - 1 - (bit >> 3)]! |= 1 << (bit & 7);
}

interface CannedLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** Creates a log entry. Half of the contracts are ERC-20, a quarter ERC-721, and a quarter ERC-1155. */
function createLog(number: number): CannedLog {
  const contract = mix(number, 1) % CONTRACTS;
  const address = contracts[contract]!;
  const from = mix(number, 2) % MINT_EVERY === 0 ? ZERO_WORD : owners[mix(number, 3) % OWNERS]!;
  const to = owners[mix(number, 4) % OWNERS]!;
  const value = mix(number, 5) + 1;
  if (contract % 2 === 0) return { address, topics: [TRANSFER, from, to], data: `0x${toWord(value)}` };
  if (contract % 4 === 1) return { address, topics: [TRANSFER, from, to, `0x${toWord(value)}`], data: '0x' };
  const operator = owners[mix(number, 6) % OWNERS]!;
  const data = `0x${toWord(value)}${toWord(1 + (value % 5))}`;
  return { address, topics: [TRANSFER_SINGLE, operator, from, to], data };
}

const CONSTANT_FIELDS = `"difficulty":"0x0","extraData":"0x","gasLimit":"0x1c9c380","gasUsed":"0xe4e1c0","baseFeePerGas":"0x7","miner":"0x${'0'.repeat(40)}","mixHash":"${ZERO_WORD}","nonce":"0x0000000000000000","receiptsRoot":"${hashOf('receipts')}","sha3Uncles":"${hashOf('uncles')}","size":"0x220","stateRoot":"${hashOf('state')}","transactionsRoot":"${hashOf('transactions')}","uncles":[]`;

// Creates a block with a valid parent hash and a bloom filter that matches its logs. Each log yields one activity.
export function createCannedBlock(number: number, logsPerBlock: number) {
  const [blockHash, blockNumber] = [blockHashOf(number), toQuantity(number)];
  const bloom = Buffer.alloc(BLOOM_BYTES);
  const transactions: string[] = [];
  const logs: string[] = [];
  for (let index = 0; index < logsPerBlock; index++) {
    const transaction = Math.floor(index / LOGS_PER_TRANSACTION);
    transactions[transaction] ??= hashOf(`transaction ${number} ${transaction}`);
    const { address, topics, data } = createLog(number * logsPerBlock + index);
    for (const text of [address, ...topics.slice(0, 3)]) addBits(bloom, readCachedBits(text));
    // The fourth topic is an owner or the id of an ERC-721 token, which is unique and therefore not cached.
    if (topics[3] !== undefined) addBits(bloom, topics[0] === TRANSFER ? bitsOf(topics[3]) : readCachedBits(topics[3]));
    logs.push(
      `{"address":"${address}","topics":["${topics.join('","')}"],"data":"${data}","blockHash":"${blockHash}","blockNumber":"${blockNumber}","transactionHash":"${transactions[transaction]}","transactionIndex":"${toQuantity(transaction)}","logIndex":"${toQuantity(index)}","removed":false}`,
    );
  }
  const time = toQuantity(FIRST_BLOCK_S + number * BLOCK_S);
  const hashes = transactions.map((each) => `"${each}"`).join(',');
  const block = `{"number":"${blockNumber}","hash":"${blockHash}","parentHash":"${blockHashOf(number - 1)}","timestamp":"${time}","logsBloom":"0x${bloom.toString('hex')}",${CONSTANT_FIELDS},"transactions":[${hashes}]}`;
  return { hash: blockHash, block, logs: logs.join(',') };
}
