import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UnreachableError } from './command.ts';

const keyPair = z.object({ publishable: z.string(), secret: z.string() });

/** The part of `.playline/stack.json` that the operator reads; parts that do not run are absent. */
const stackSchema = z.object({
  gateway: z.string().optional(),
  clickhouse: z.object({ url: z.string(), user: z.string(), password: z.string(), database: z.string() }).optional(),
  redis: z.string().optional(),
  kafka: z.array(z.string()).optional(),
  registry: z.string().optional(),
  keys: z.object({ production: keyPair, development: keyPair }).optional(),
});

export type Stack = z.infer<typeof stackSchema>;

/**
 * Addresses and keys of the stack that runs from `folder`; all absent when none does.
 * @throws UnreachableError when the file is there and cannot be read as one
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

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
