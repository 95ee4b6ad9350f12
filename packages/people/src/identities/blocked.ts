import { foldId, isPlaceholder } from './placeholders.ts';

/** Whether an id may not link anybody in an environment. */
export type IsBlocked = (environmentId: string, id: string) => boolean;

/**
 * Creates the check for blocked ids: placeholders, and values that an operator has named.
 * @param blockedOf further values by environment id, compared as placeholders are
 */
export function createIsBlocked(blockedOf: Readonly<Record<string, readonly string[]>> = {}): IsBlocked {
  const further = new Map(Object.entries(blockedOf).map(([id, values]) => [id, new Set(values.map(foldId))]));
  return (environmentId, id) => isPlaceholder(id) || (further.get(environmentId)?.has(foldId(id)) ?? false);
}
