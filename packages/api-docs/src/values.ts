import type { z } from 'zod';
import type { Example, JsonSchema, Operation } from './operation.ts';
import { toWholeSchema } from './schemas.ts';
import type { DocsSource } from './source.ts';

// What a reader fills in is written as collections write their variables, in camel case: `{{publishableKey}}`.

/** Stands for the reader's own key of a kind. */
export const placeholderOf = (kind: string): string => `{{${kind}Key}}`;

/** Stands for a cursor from the previous answer. */
export const CURSOR_PLACEHOLDERS = { next: '{{nextCursor}}', previous: '{{previousCursor}}' } as const;

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

/** True for a text that is one placeholder and nothing else. */
export const isPlaceholder = (text: string): boolean => /^\{\{\w+\}\}$/.test(text);

/** Splits a text at its placeholders: text, name of a placeholder, text, and so on. */
export const splitAtPlaceholders = (text: string): string[] => text.split(PLACEHOLDER);

/** The shell variable for a placeholder: `$PUBLISHABLE_KEY`. */
export const toShellVariable = (placeholder: string): string =>
  `$${placeholder
    .replaceAll(/[{}]/g, '')
    .replaceAll(/(?=[A-Z])/g, '_')
    .toUpperCase()}`;

/** The placeholders in examples: keys in the order of the source, then cursors. */
export function placeholdersIn({ keys }: Pick<DocsSource, 'keys'>, examples: readonly Example[]): string[] {
  const held = new Set(
    examples.flatMap(({ request }) =>
      [request.target, ...Object.values(request.headers)].flatMap((text) => text.match(PLACEHOLDER) ?? []),
    ),
  );
  return [...keys.map(({ kind }) => placeholderOf(kind)), ...Object.values(CURSOR_PLACEHOLDERS)].filter((one) =>
    held.has(one),
  );
}

/** The values that an example's address gives to the parameters of its operation, as text. */
export function valuesIn({ path, parameters }: Operation, { request }: Example): ReadonlyMap<string, string> {
  const { pathname, searchParams } = new URL(request.target, 'http://any');
  const parts = pathname.split('/');
  const inPath = path.split('/').flatMap((part, index): [string, string][] => {
    const name = nameIn(part);
    return name === null || parts[index] === undefined ? [] : [[name, decodeURIComponent(parts[index])]];
  });
  const inQuery = parameters.flatMap((parameter): [string, string][] => {
    const value = parameter.in === 'query' ? searchParams.get(parameter.name) : null;
    return value === null ? [] : [[parameter.name, value]];
  });
  return new Map([...inPath, ...inQuery]);
}

/** Name of the parameter that a part of a path stands for; null for a fixed part. */
export const nameIn = (part: string): string | null => /^\{(\w+)\}$/.exec(part)?.[1] ?? null;

/**
 * The JSON value that a text in an address means.
 * @returns undefined when it is a placeholder, or when the schema does not allow it
 */
export function jsonValueOf(text: string, schema: z.ZodType): unknown {
  if (isPlaceholder(text)) return undefined;
  const { type } = toWholeSchema(schema);
  const value = type === 'integer' || type === 'number' ? toNumber(text) : text;
  return schema.safeParse(value).success ? value : undefined;
}

/** A text that is not a number stays text, which no schema of numbers allows. */
const toNumber = (text: string): unknown => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/**
 * Which values are allowed, where that is more than "text": `integer from 1 to 200`, `one of a, b`, `date-time`, and
 * the default.
 */
export function describeValues(of: z.ZodType): string[] {
  const schema = toWholeSchema(of);
  const { enum: values, type, format, default: fallback } = schema;
  const words: string[] = [];
  if (Array.isArray(values)) words.push(`one of ${values.join(', ')}`);
  else if (type === 'integer' || type === 'number') words.push(`${type}${describeBounds(schema)}`);
  else if (format !== undefined) words.push(String(format));
  if (fallback !== undefined) words.push(`${String(fallback)} when absent`);
  return words;
}

function describeBounds({ minimum, maximum }: JsonSchema): string {
  const [from, to] = [boundOf(minimum), boundOf(maximum)];
  if (from !== null && to !== null) return ` from ${from} to ${to}`;
  if (from !== null) return ` of at least ${from}`;
  return to === null ? '' : ` of at most ${to}`;
}

/** The largest integer that a double can hold is no bound that matters to a caller. */
function boundOf(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : null;
}
