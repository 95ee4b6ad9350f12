import { keccak_256 } from '@noble/hashes/sha3.js';

/** Decodes ABI data. Positions are in bytes. */
const WORD = 32;
/** No log has as many bytes. */
const POSITION_MAX = 2 ** 31;

/** Not the SHA-3 of Node. */
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

/** Every method throws an AbiFault beyond the end. */
export class AbiReader {
  private readonly bytes: Buffer;

  /** @param text hexadecimal with `0x` */
  constructor(text: string) {
    this.bytes = Buffer.from(text.slice(2), 'hex');
    if (this.bytes.length * 2 !== text.length - 2) throw new AbiFault('is no hexadecimal');
  }

  get length(): number {
    return this.bytes.length;
  }

  private slice(at: number, length: number = WORD): Buffer {
    if (at < 0 || at + length > this.bytes.length) throw new AbiFault('ends too early');
    return this.bytes.subarray(at, at + length);
  }

  uint(at: number): bigint {
    return BigInt(`0x${this.slice(at).toString('hex')}`);
  }

  count(at: number): number {
    const value = this.uint(at);
    if (value > POSITION_MAX) throw new AbiFault('has a position beyond any log');
    return Number(value);
  }

  address(at: number): string {
    return toAddress(`0x${this.slice(at).toString('hex')}`);
  }

  text(at: number): string {
    return `0x${this.slice(at).toString('hex')}`;
  }

  /** `at` has the position of the list. */
  uints(at: number): bigint[] {
    const start = this.count(at);
    const length = this.count(start);
    if (start + WORD * (length + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => this.uint(start + WORD * (index + 1)));
  }

  /** Starts of the elements of a list. @param size of an element, in units of 32 bytes */
  elements(at: number, size: number): number[] {
    const start = this.count(at);
    const length = this.count(start);
    if (start + WORD * (length * size + 1) > this.bytes.length) throw new AbiFault('ends too early');
    return Array.from({ length }, (_, index) => start + WORD * (1 + index * size));
  }

  /** `at` has the position of the bytes. */
  string(at: number): Buffer {
    const start = this.count(at);
    return this.slice(start + WORD, this.count(start));
  }
}

/** @throws AbiFault */
export function toAddress(word: string): string {
  if (!/^0x0{24}[0-9a-f]{40}$/.test(word)) throw new AbiFault('is no address');
  return `0x${word.slice(26)}`;
}

export const toUint = (word: string): bigint => BigInt(word);

export const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
