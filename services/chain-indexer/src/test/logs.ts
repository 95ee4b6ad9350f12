import { keccak } from '@playline/chain';

/** Literals, so that tests do not import the topics from the code under test. */
export const TOPIC = {
  transfer: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
  transferSingle: '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62',
  transferBatch: '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb',
  consecutiveTransfer: '0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d',
} as const;

/** Computes a block's bloom filter as the Ethereum yellow paper defines it. */
export function bloomOf(logs: readonly { address: string; topics: readonly string[] }[]): Buffer {
  let bloom = 0n;
  for (const { address, topics } of logs)
    for (const text of [address, ...topics]) {
      const hash = keccak(Buffer.from(text.slice(2), 'hex'));
      for (const at of [0, 2, 4]) bloom |= 1n << BigInt(hash.readUInt16BE(at) % 2048);
    }
  return Buffer.from(bloom.toString(16).padStart(512, '0'), 'hex');
}
