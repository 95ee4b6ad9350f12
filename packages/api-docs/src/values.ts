import type { z } from 'zod';
import type { Example, JsonSchema, Operation } from './operation.ts';
import { toWholeSchema } from './schemas.ts';
import type { DocsSource } from './source.ts';

// Placeholders are written as variables of collections, in camel case: `{{publishableKey}}`.

/** The placeholder of a kind of key. */
export const placeholderOf = (kind: string): string => `{{${kind}Key}}`;

/** Placeholders of a cursor from the previous answer. */
export const CURSOR_PLACEHOLDERS = { next: '{{nextCursor}}', previous: '{{previousCursor}}' } as const;

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

export const isPlaceholder = (text: string): boolean => /^\{\{\w+\}\}$/.test(text);

/** Returns texts and names of placeholders in turn. */
export const splitAtPlaceholders = (text: string): string[] => text.split(PLACEHOLDER);

/** `$PUBLISHABLE_KEY` for `{{publishableKey}}`. */
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

/** The values of an operation's parameters in the address of an example, as text. */
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

/** Name of the path parameter of a segment; null for a fixed segment. */
export const nameIn = (part: string): string | null => /^\{(\w+)\}$/.exec(part)?.[1] ?? null;

/** The JSON value of a text in an address; undefined for a placeholder, or when the schema does not allow it. */
export function jsonValueOf(text: string, schema: z.ZodType): unknown {
  if (isPlaceholder(text)) return undefined;
  const { type } = toWholeSchema(schema);
  const value = type === 'integer' || type === 'number' ? toNumber(text) : text;
  return schema.safeParse(value).success ? value : undefined;
}

/** Other text stays text, which no schema of numbers allows. */
const toNumber = (text: string): unknown => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** The allowed values beyond "text" (`integer from 1 to 200`, `one of a, b`, `date-time`) and the default. */
export function describeValues(of: z.ZodType): string[] {
  const schema = toWholeSchema(of);
  const { enum: values, type, format, default: fallback } = schema;
  const texts: string[] = [];
  if (Array.isArray(values)) texts.push(`one of ${values.join(', ')}`);
  else if (type === 'integer' || type === 'number') texts.push(`${type}${describeBounds(schema)}`);
  else if (format !== undefined) texts.push(String(format));
  if (fallback !== undefined) texts.push(`${String(fallback)} when absent`);
  return texts;
}

function describeBounds({ minimum, maximum }: JsonSchema): string {
  const [from, to] = [boundOf(minimum), boundOf(maximum)];
  if (from !== null && to !== null) return ` from ${from} to ${to}`;
  if (from !== null) return ` of at least ${from}`;
  return to === null ? '' : ` of at most ${to}`;
}

/** Omits zod's bound of safe integers. */
function boundOf(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : null;
}
