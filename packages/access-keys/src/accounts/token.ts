import { hash, randomBytes } from 'node:crypto';

/** 256 random bits, base64url. */
export function createToken(): string {
  return randomBytes(32).toString('base64url');
}

/** What is stored of a text: SHA-256, hexadecimal. */
export function hashToken(text: string): string {
  return hash('sha256', text, 'hex');
}
