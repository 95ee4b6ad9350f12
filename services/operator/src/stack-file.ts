import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@playline/runtime';
import { z } from 'zod';
import { UnreachableError } from './command.ts';

const keyPair = z.object({ publishable: z.string(), secret: z.string() });

/** The part of `.playline/stack.json` that the operator reads; services that do not run are absent. */
const stackSchema = z.object({
  gateway: z.string().optional(),
  chainApi: z.string().optional(),
  portal: z.string().optional(),
  chains: z.array(z.object({ name: z.string(), id: z.string() })).optional(),
  chain: z
    .object({
      rpc: z.string(),
      contracts: z.object({ erc721: z.string(), erc1155: z.string(), erc20: z.string() }).optional(),
      signer: z.string().optional(),
    })
    .optional(),
  clickhouse: z.object({ url: z.string(), user: z.string(), password: z.string(), database: z.string() }).optional(),
  redis: z.string().optional(),
  kafka: z.array(z.string()).optional(),
  registry: z.string().optional(),
  signerPublicKey: z.string().optional(),
  keys: z.object({ production: keyPair, development: keyPair }).optional(),
});

/** The part of `.playline/secrets.json` that the operator reads. */
const secretsSchema = z.object({ identityPepper: settings.secretHex(32) });

export type Stack = z.infer<typeof stackSchema>;

/**
 * Addresses and keys of the stack that runs from `folder`; all absent without one.
 * @throws UnreachableError when the file exists but is invalid
 */
export function readStack(folder: string): Stack {
  const path = join(folder, '.playline', 'stack.json');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return {};
  }
  const parsed = stackSchema.safeParse(toJson(text));
  if (!parsed.success) throw new UnreachableError(`${path} is not a stack file: start the stack again (npm run up)`);
  return parsed.data;
}

/**
 * The pepper of the stack in `folder`, which stays the same as long as its data; null without a stack.
 * @throws UnreachableError when the file exists but cannot be read
 */
export function readStackPepper(folder: string): Buffer | null {
  const path = join(folder, '.playline', 'secrets.json');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return null;
  }
  const parsed = secretsSchema.safeParse(toJson(text));
  if (!parsed.success) throw new UnreachableError(`${path} holds no pepper: start the stack again (npm run up)`);
  return parsed.data.identityPepper;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
