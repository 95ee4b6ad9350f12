import { NodeFault } from '@playline/chain';
import { z } from 'zod';

const hexText = z.string().regex(/^0x[0-9a-fA-F]*$/);
export const hex = hexText.transform((text) => text.toLowerCase());
export const quantity = hexText.transform((text) => BigInt(text));
export const count = quantity.transform(Number);
export const block = z.object({ number: count, hash: hex, baseFeePerGas: quantity.default(0n) });
/** Methods that several files call. */
export const BLOCK = 'eth_getBlockByNumber';
export const NONCES = 'eth_getTransactionCount';

export const toQuantity = (number: number): string => `0x${number.toString(16)}`;

/** Parses the answer of a node. @throws NodeFault when it does not have the expected shape */
export function parseAnswer<T>(schema: z.ZodType<T>, method: string, answer: unknown): T {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new NodeFault('unreachable', `the node of the chain answered ${method} with something else`);
}
