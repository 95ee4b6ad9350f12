import { keccak_256 } from '@noble/hashes/sha3.js';

/** Decodes ABI data. Positions are in bytes. */
const WORD = 32;
/** Larger than any log. */
const POSITION_MAX = 2 ** 31;

/** Keccak-256, which differs from SHA-3 in Node. */
export const keccak = (bytes: Uint8Array): Buffer => Buffer.from(keccak_256(bytes));

/** @param signature such as `Transfer(address,address,uint256)` */
export const eventTopicOf = (signature: string): string => `0x${keccak(Buffer.from(signature)).toString('hex')}`;

/** The first four bytes of a call. */
export const selectorOf = (signature: string): string =>
  `0x${keccak(Buffer.from(signature)).toString('hex').slice(0, 8)}`;

/** Data does not fit its ABI type. */
export class AbiFault extends Error {
  override readonly name = 'AbiFault';
}

/** Every method throws an AbiFault when it reads beyond the end. */
export class AbiReader {
  private readonly bytes: Buffer;

  /** @param text hexadecimal with `0x` */
  constructor(text: string) {
    this.bytes = Buffer.from(text.slice(2), 'hex');
    if (this.bytes.length * 2 !== text.length - 2) throw new AbiFault('is not hexadecimal');
  }

  get length(): number {
    return this.bytes.length;
  }

  private slice(position: number, length: number = WORD): Buffer {
    if (position < 0 || position + length > this.bytes.length) throw new AbiFault('ends too early');
    return this.bytes.subarray(position, position + length);
  }

  uint(position: number): bigint {
    return BigInt(`0x${this.slice(position).toString('hex')}`);
  }

  count(position: number): number {
    const value = this.uint(position);
    if (value > POSITION_MAX) throw new AbiFault('has a position out of range');
    return Number(value);
  }

  address(position: number): string {
    return toAddress(`0x${this.slice(position).toString('hex')}`);
  }

  text(position: number): string {
    return `0x${this.slice(position).toString('hex')}`;
  }

  /** `position` holds the position of the list. */
  uints(position: number): bigint[] {
    const start = this.count(position);
    const length = this.count(start);
    if (start + WORD * (length + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => this.uint(start + WORD * (index + 1)));
  }

  /** Starts of the elements of a list. @param size of an element, in units of 32 bytes */
  elements(position: number, size: number): number[] {
    const start = this.count(position);
    const length = this.count(start);
    if (start + WORD * (length * size + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => start + WORD * (1 + index * size));
  }

  /** `position` holds the position of the bytes. */
  string(position: number): Buffer {
    const start = this.count(position);
    return this.slice(start + WORD, this.count(start));
  }
}

/** @throws AbiFault */
export function toAddress(word: string): string {
  if (!/^0x0{24}[0-9a-f]{40}$/.test(word)) throw new AbiFault('is not an address');
  return `0x${word.slice(26)}`;
}

export const toUint = (word: string): bigint => BigInt(word);

export const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
