/**
 * Texts that broken or careless clients send in the place of an id; each would join strangers into one person.
 */
const BLOCKED_EVERYWHERE: readonly string[] = [
  'anonymous',
  'guest',
  'distinctid',
  'distinct_id',
  'id',
  'not_authenticated',
  'email',
  'undefined',
  'null',
  'none',
  'nan',
  'true',
  'false',
  '0',
  '-1',
  '[object object]',
];

/** Any run of zeros and hyphens, the nil UUID among them. */
const ZEROS = /^[0-]+$/;
const QUOTED = /^(["'`])(.*)\1$/s;

/** Says whether an id may not link anybody in an environment. */
export type IsBlocked = (environmentId: string, id: string) => boolean;

/** Two ids that are the same blocked value have the same bare text: trimmed, outside its quotes, in lower case. */
function toBareText(id: string): string {
  let text = id.trim();
  for (let inside = QUOTED.exec(text); inside !== null; inside = QUOTED.exec(text)) text = inside[2]!.trim();
  return text.toLowerCase();
}

/**
 * Creates the check for blocked ids.
 * @param blockedOf further values by environment id, compared in the same way
 */
export function createIsBlocked(blockedOf: Readonly<Record<string, readonly string[]>> = {}): IsBlocked {
  const everywhere = new Set(BLOCKED_EVERYWHERE);
  const further = new Map(Object.entries(blockedOf).map(([id, values]) => [id, new Set(values.map(toBareText))]));
  return (environmentId, id) => {
    const text = toBareText(id);
    return text === '' || ZEROS.test(text) || everywhere.has(text) || (further.get(environmentId)?.has(text) ?? false);
  };
}
