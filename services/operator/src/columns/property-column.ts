import { quoteText } from '@playline/stores';
import { choiceOf, textOf, UsageError, type Values } from '../command.ts';
import { parsePath } from './property-path.ts';
import { PROPERTY_TYPES, TYPE_NAMES, type TypeName } from './property-types.ts';

/**
 * Prefix of all property columns, so that their names never clash with columns of the schema. The views of analysts and
 * the list of places of erasures rely on it too.
 */
export const PREFIX = 'property_';
const NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** A property of events that has its own column. */
export interface PropertyColumn {
  /** Name without the prefix. */
  readonly name: string;
  /** As the operator wrote it. */
  readonly path: string;
  readonly type: TypeName;
  /** Value of rows without a valid one; null for NULL. */
  readonly fallback: string | null;
  /** When it was added, ISO 8601. */
  readonly since: string;
}

export const columnOf = (name: string): string => PREFIX + name;

/** @throws UsageError for an invalid name */
export function parseName(values: Values): string {
  const name = textOf(values, 'name') ?? '';
  if (name.startsWith(PREFIX)) throw new UsageError(`--name: expected it without ${PREFIX}, which comes by itself`);
  if (!NAME.test(name))
    throw new UsageError('--name: expected a letter, then at most 63 letters, digits and _, all small');
  return name;
}

/** The column that the arguments of `add` describe. @throws UsageError for invalid arguments */
export function parseColumn(values: Values): Omit<PropertyColumn, 'since'> {
  const name = parseName(values);
  const path = textOf(values, 'path');
  if (path === undefined) throw new UsageError('--path: expected where the property stands, such as economy.coins');
  parsePath(path);
  const type = choiceOf(values, 'type', { choices: TYPE_NAMES });
  const given = values.default;
  return { name, path, type, fallback: typeof given === 'string' ? PROPERTY_TYPES[type].parseDefault(given) : null };
}

/** The statement that adds the column. New rows get their value at the insert, stored ones when they are read. */
export function toAddStatement({ name, path, type, fallback, since }: PropertyColumn): string {
  const { plain, nullable, read, toLiteral } = PROPERTY_TYPES[type];
  // Evaluated once for each row: the engine computes equal expressions only once.
  const raw = `JSONExtractRaw(properties, ${parsePath(path).map(quoteText).join(', ')})`;
  const value = read(raw);
  const [kept, expression] =
    fallback === null ? [nullable, value] : [plain, `ifNull(${value}, ${toLiteral(fallback)})`];
  const comment = `Property of events: ${JSON.stringify({ path, type, default: fallback, since })}`;
  return `ALTER TABLE events ADD COLUMN ${columnOf(name)} ${kept} DEFAULT ${expression} COMMENT ${quoteText(comment)}`;
}

/** Parses the comment of a column; null when it was not written by this command. */
export function readComment(name: string, comment: string): PropertyColumn | null {
  const [, text = ''] = /^Property of events: (\{.*\})$/.exec(comment) ?? [];
  try {
    const { path, type, default: fallback, since } = JSON.parse(text) as Record<string, unknown>;
    const known = TYPE_NAMES.find((each) => each === type);
    if (typeof path !== 'string' || typeof since !== 'string' || known === undefined) return null;
    return { name, path, type: known, fallback: typeof fallback === 'string' ? fallback : null, since };
  } catch {
    return null;
  }
}

/** In words, without its name. */
export const describeColumn = ({ path, type, fallback }: Omit<PropertyColumn, 'since' | 'name'>): string =>
  `${path} as ${type}, ${fallback === null ? 'NULL' : JSON.stringify(fallback)} where there is none`;
