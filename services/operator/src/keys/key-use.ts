import type { KeyUsage, KeyUse } from '@playline/access-keys';
import { UnreachableError } from '../command.ts';

export interface UsageSource {
  openUsage(): Promise<Pick<KeyUsage, 'readKeys'> & { close(): Promise<void> }>;
}

/** @throws UnreachableError when Redis does not answer */
export async function readUse(
  { openUsage }: UsageSource,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, KeyUse>> {
  const usage = await openUsage();
  try {
    return await usage.readKeys(keyIds);
  } catch {
    throw new UnreachableError('Redis does not return the use of keys: check npm run status');
  } finally {
    await usage.close();
  }
}

export function toUseText({ lastUsedAt, usesOfHour, refusalsOfHour }: KeyUse): string {
  if (lastUsedAt === null) return 'not seen in use';
  return `last used ${new Date(lastUsedAt).toISOString()}, ${usesOfHour} uses and ${refusalsOfHour} refusals in the last hour`;
}
