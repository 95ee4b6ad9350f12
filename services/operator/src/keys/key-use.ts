import type { KeyUsage, KeyUse } from '@playline/access-keys';
import { UnreachableError } from '../command.ts';

/** Opens the records of the use of keys. */
export interface UsageSource {
  openUsage(): Promise<Pick<KeyUsage, 'readKeys'> & { close(): Promise<void> }>;
}

/** Reads the use of keys. @throws UnreachableError when Redis does not answer */
export async function readUse(
  { openUsage }: UsageSource,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, KeyUse>> {
  const usage = await openUsage();
  try {
    return await usage.readKeys(keyIds);
  } catch {
    throw new UnreachableError('Redis does not say how keys are used: see npm run status');
  } finally {
    await usage.close();
  }
}

/** The use of a key as text of a `list` line. */
export function toUseText({ lastUsedAt, usesOfHour, refusalsOfHour }: KeyUse): string {
  if (lastUsedAt === null) return 'not seen in use';
  return `last used ${new Date(lastUsedAt).toISOString()}, ${usesOfHour} uses and ${refusalsOfHour} refusals in the last hour`;
}
