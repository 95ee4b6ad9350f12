/** Values that broken or careless clients send instead of an id. Each of them would join strangers into one person. */
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

/** Only zeros and hyphens, such as the nil UUID. */
const ZEROS = /^[0-]+$/;
const QUOTED = /^(["'`])(.*)\1$/s;

/** Whether an id may not link anybody in an environment. */
export type IsBlocked = (environmentId: string, id: string) => boolean;

/** Reduces an id to the form in which blocked values are compared: trimmed, without quotes around it, in lower case. */
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
