import { keccak_256 } from '@noble/hashes/sha3.js';

/** ABI data consists of 32-byte slots. Positions are in bytes. */
const WORD = 32;
/** Larger than any log's data. */
const POSITION_MAX = 2 ** 31;

/** Computes Keccak-256, which is not Node's SHA-3. */
export const keccak = (bytes: Uint8Array): Buffer => Buffer.from(keccak_256(bytes));

/** @param signature such as `Transfer(address,address,uint256)` */
export const eventTopicOf = (signature: string): string => `0x${keccak(Buffer.from(signature)).toString('hex')}`;

/** Returns the first four bytes of a call to the function. */
export const selectorOf = (signature: string): string =>
  `0x${keccak(Buffer.from(signature)).toString('hex').slice(0, 8)}`;

/** The data does not match its ABI type. */
export class AbiFault extends Error {
  override readonly name = 'AbiFault';
}

/** Decodes ABI data. Every method throws an AbiFault if it would read past the end. */
export class AbiReader {
  private readonly bytes: Buffer;

  /** @param text hexadecimal digits after `0x` */
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

  /** Reads a list of integers. @param position of the word that contains the list's position */
  uints(position: number): bigint[] {
    const start = this.count(position);
    const length = this.count(start);
    if (start + WORD * (length + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => this.uint(start + WORD * (index + 1)));
  }

  /** Returns the start of each element in a list. @param size of an element in 32-byte slots */
  elements(position: number, size: number): number[] {
    const start = this.count(position);
    const length = this.count(start);
    if (start + WORD * (length * size + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => start + WORD * (1 + index * size));
  }

  /** Reads a byte string. @param position of the word that contains the string's position */
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
