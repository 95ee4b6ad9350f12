import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@playline/runtime';
import { z } from 'zod';
import { UnreachableError } from './command.ts';

const keyPair = z.object({ publishable: z.string(), secret: z.string() });

/** The part of `.playline/stack.json` that commands use; services that do not run are absent. */
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

/** The part of `.playline/secrets.json` that commands use. */
const secretsSchema = z.object({ identityPepper: settings.secretHex(32) });

export type Stack = z.infer<typeof stackSchema>;

/** The stack that runs from `folder`; all members are absent without one. @throws UnreachableError for an invalid file */
export function readStack(folder: string): Stack {
  const path = join(folder, '.playline', 'stack.json');
  const parsed = stackSchema.safeParse(readJson(path) ?? {});
  if (!parsed.success) throw new UnreachableError(`${path} is invalid: start the stack again (npm run up)`);
  return parsed.data;
}

/** The pepper of the stack in `folder`; null without a stack. @throws UnreachableError for an invalid file */
export function readStackPepper(folder: string): Buffer | null {
  const path = join(folder, '.playline', 'secrets.json');
  const secrets = readJson(path);
  if (secrets === undefined) return null;
  const parsed = secretsSchema.safeParse(secrets);
  if (!parsed.success) throw new UnreachableError(`${path} contains no pepper: start the stack again (npm run up)`);
  return parsed.data.identityPepper;
}

/** Undefined without the file, null for invalid JSON. */
function readJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
